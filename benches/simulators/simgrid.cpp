// The cases of compare.sh in SimGrid: hosts of a torus that send each other messages.
//
//   simgrid PLATFORM CASE SIDES COUNT BYTES GAP_NS [--cfg=...]
//
// CASE is `all-reduce` (COUNT times, by recursive doubling), `halo` (COUNT times with the
// six neighbours in a closed grid of SIDES, such as 8x8x16) or `uniform` (each host sends
// COUNT messages to others at random, GAP_NS apart). Prints the messages and the simulated
// microseconds.
#include <simgrid/s4u.hpp>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

struct Case {
    std::array<unsigned, 3> sides;
    unsigned                count;
    uint64_t                bytes;
    double                  gap;
    std::vector<s4u::Host*> hosts;
};

static Case     given;
static char     payload; // Nobody looks at bytes.
static uint64_t messages;

static s4u::Mailbox* mailbox(unsigned host, unsigned number)
{
    return s4u::Mailbox::by_name(std::to_string(host) + "/" + std::to_string(number));
}

static void all_reduce(unsigned me)
{
    for (unsigned operation = 0; operation < given.count; operation++) {
        unsigned round = 0;
        for (unsigned bit = 1; bit < given.hosts.size(); bit *= 2, round++) {
            auto sent = mailbox(me ^ bit, round)->put_async(&payload, given.bytes);
            mailbox(me, round)->get<char>();
            sent->wait();
            messages++;
        }
    }
}

static std::array<unsigned, 6> neighbours(unsigned me)
{
    std::array<unsigned, 6> found;
    unsigned                stride = 1;
    for (unsigned d = 0; d < 3; d++) {
        unsigned side = given.sides[d];
        unsigned place = me / stride % side;
        found[2 * d] = me + ((place + 1) % side - place) * stride;
        found[2 * d + 1] = me + ((place + side - 1) % side - place) * stride;
        stride *= side;
    }
    return found;
}

static void halo(unsigned me)
{
    auto others = neighbours(me);
    for (unsigned repeat = 0; repeat < given.count; repeat++) {
        std::vector<s4u::CommPtr> all;
        std::array<char*, 6>      got;
        for (unsigned side = 0; side < 6; side++) {
            all.push_back(mailbox(others[side], side)->put_async(&payload, given.bytes));
            all.push_back(mailbox(me, side)->get_async<char>(&got[side]));
            messages++;
        }
        for (auto& part : all)
            part->wait();
    }
}

static void send_by_lot(const std::vector<unsigned>& targets)
{
    for (unsigned to : targets) {
        s4u::this_actor::sleep_for(given.gap);
        mailbox(to, 0)->put_init(&payload, given.bytes)->detach();
        messages++;
    }
}

static void receive(unsigned me, unsigned count)
{
    while (count-- > 0)
        mailbox(me, 0)->get<char>();
}

static void start_uniform()
{
    unsigned              hosts = given.hosts.size();
    std::mt19937          lot(1);
    std::vector<unsigned> comes(hosts, 0);
    for (unsigned me = 0; me < hosts; me++) {
        std::vector<unsigned> targets;
        while (targets.size() < given.count) {
            unsigned other = lot() % (hosts - 1);
            targets.push_back(other + (other >= me));
            comes[targets.back()]++;
        }
        s4u::Actor::create("send", given.hosts[me], send_by_lot, targets);
    }
    for (unsigned me = 0; me < hosts; me++)
        s4u::Actor::create("receive", given.hosts[me], receive, me, comes[me]);
}

static void start(const std::function<void(unsigned)>& program)
{
    for (unsigned me = 0; me < given.hosts.size(); me++)
        s4u::Actor::create("rank", given.hosts[me], program, me);
}

int main(int argc, char** argv)
{
    s4u::Engine engine(&argc, argv);
    if (argc < 7)
        return fprintf(stderr, "simgrid PLATFORM CASE SIDES COUNT BYTES GAP_NS\n"), 2;
    engine.load_platform(argv[1]);
    std::string name = argv[2];
    auto& [x, y, z] = given.sides;
    if (sscanf(argv[3], "%ux%ux%u", &x, &y, &z) != 3)
        return fprintf(stderr, "%s are no sides, such as 8x8x16\n", argv[3]), 2;
    given.count = atoi(argv[4]);
    given.bytes = atoi(argv[5]);
    given.gap = atoi(argv[6]) * 1e-9;
    for (unsigned me = 0; me < x * y * z; me++)
        given.hosts.push_back(engine.host_by_name("n" + std::to_string(me)));
    if (name == "all-reduce")
        start(all_reduce);
    else if (name == "halo")
        start(halo);
    else if (name == "uniform")
        start_uniform();
    else
        return fprintf(stderr, "no case %s: all-reduce, halo or uniform\n", name.c_str()), 2;
    engine.run();
    printf("%llu %.3f\n", (unsigned long long)messages, s4u::Engine::get_clock() * 1e6);
    return 0;
}
