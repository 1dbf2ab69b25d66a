/*
 * What an attacker does with datagrams on the loopback device:
 *
 *   wire up                              brings the device up (a new network namespace
 *                                        has it down)
 *   wire record PORT FILE                writes datagrams that go to that port, until
 *                                        standard input ends; needs CAP_NET_RAW
 *   wire replay FILE FROM PORT TO PORT   sends them again from that address
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int fail(const char *what)
{
    perror(what);
    return 1;
}

static int up(void)
{
    int          fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct ifreq request;
    memset(&request, 0, sizeof request);
    strcpy(request.ifr_name, "lo");
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0) {
        return fail("wire: lo");
    }
    request.ifr_flags |= IFF_UP | IFF_RUNNING;
    return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? fail("wire: lo up") : 0;
}

/* Writes the payload of a datagram to that port. */
static void keep(const unsigned char *packet, size_t length, int port, FILE *file)
{
    const struct iphdr *ip = (const struct iphdr *)packet;
    size_t              skip = ip->ihl * 4u + sizeof(struct udphdr);
    if (length < skip || ip->protocol != IPPROTO_UDP) {
        return;
    }
    struct udphdr udp;
    memcpy(&udp, packet + ip->ihl * 4u, sizeof udp);
    if (ntohs(udp.dest) != port) {
        return;
    }
    uint32_t payload = (uint32_t)(length - skip);
    fwrite(&payload, sizeof payload, 1, file);
    fwrite(packet + skip, payload, 1, file);
    fflush(file);
}

static int record(int port, const char *path)
{
    static unsigned char packet[1 << 17];
    FILE                *file = fopen(path, "wb");
    int                  fd = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
    struct sockaddr_ll   device;
    memset(&device, 0, sizeof device);
    device.sll_family = AF_PACKET;
    device.sll_protocol = htons(ETH_P_IP);
    device.sll_ifindex = (int)if_nametoindex("lo");
    if (file == NULL || fd < 0 || bind(fd, (struct sockaddr *)&device, sizeof device) < 0) {
        return fail("wire: record");
    }
    printf("recording\n");
    fflush(stdout);
    for (;;) {
        struct pollfd both[] = {{fd, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
        if (poll(both, 2, -1) < 0) {
            return fail("wire: poll");
        }
        if (both[0].revents != 0) {
            struct sockaddr_ll from;
            socklen_t          size = sizeof from;
            ssize_t got = recvfrom(fd, packet, sizeof packet, 0, (struct sockaddr *)&from, &size);
            if (got > 0 && from.sll_pkttype != PACKET_OUTGOING) {
                keep(packet, (size_t)got, port, file);
            }
        } else if (both[1].revents != 0) {
            return fclose(file) == 0 ? 0 : fail("wire: file");
        }
    }
}

static struct sockaddr_in address(const char *name, const char *port)
{
    struct sockaddr_in made;
    memset(&made, 0, sizeof made);
    made.sin_family = AF_INET;
    made.sin_port = htons((uint16_t)atoi(port));
    inet_pton(AF_INET, name, &made.sin_addr);
    return made;
}

static int replay(char **words)
{
    static unsigned char payload[1 << 17];
    FILE                *file = fopen(words[0], "rb");
    int                  fd = socket(AF_INET, SOCK_DGRAM, 0), sent = 0;
    struct sockaddr_in   from = address(words[1], words[2]), to = address(words[3], words[4]);
    if (file == NULL || fd < 0 || bind(fd, (struct sockaddr *)&from, sizeof from) < 0) {
        return fail("wire: replay");
    }
    uint32_t length;
    while (fread(&length, sizeof length, 1, file) == 1 && length <= sizeof payload &&
           fread(payload, 1, length, file) == length) {
        if (sendto(fd, payload, length, 0, (struct sockaddr *)&to, sizeof to) < 0) {
            return fail("wire: send");
        }
        sent++;
    }
    printf("sent %d\n", sent);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "up") == 0) {
        return up();
    }
    if (argc == 4 && strcmp(argv[1], "record") == 0) {
        return record(atoi(argv[2]), argv[3]);
    }
    if (argc == 7 && strcmp(argv[1], "replay") == 0) {
        return replay(argv + 2);
    }
    fprintf(stderr, "wire up | record PORT FILE | replay FILE FROM PORT TO PORT\n");
    return 2;
}
