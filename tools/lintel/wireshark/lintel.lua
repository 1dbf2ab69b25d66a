-- Dissects what Lintel captures (PTL_PCAP) and its UDP datagrams, for Wireshark and tshark
-- from 3.6 on.
--
--   tshark -X lua_script:lintel.lua -r DIR/7f000001-42-4711.pcapng
--   tshark -X lua_script:lintel.lua -i eth0 udp
--
-- Wireshark loads it by itself from its folder of personal Lua plugins (Help, About, Folders).
--
-- The formats are those of host/nal/src/capture.rs (captured messages),
-- core/reliable/src/packet.rs (datagrams), core/wire/src/lib.rs and portals3.rs (the six words of
-- a message), core/cci/src/frame.rs (kinds of CCI's frames). tools/lintel/tests/packets.rs
-- compares this file with them. All numbers are little-endian.

set_plugin_info({ version = "1", author = "Lintel", description = "Portals over Lintel" })

-- Names ------------------------------------------------------------------------------------

local WHAT = {
    [1] = "sent", [2] = "arrived", [3] = "unreachable", [4] = "fetched", [5] = "filled",
    [6] = "stream is whole", [7] = "stream broken off", [8] = "process lost",
}
local PLACE = { [0] = "with the message", [1] = "left in place", [2] = "follows as a stream", [3] = "already at its target" }
local LAST_WITH_WORDS = 3

local PACKET = { [1] = "data", [2] = "acknowledgement", [3] = "probe", [4] = "close", [5] = "reset" }
local CLASS = { [0] = "ordered", [1] = "reliable", [2] = "unreliable" }

local VERB = {
    [1] = "PUT", [2] = "GET", [3] = "ATOMIC", [4] = "FETCH-ATOMIC", [5] = "SWAP", [6] = "ACK",
    [7] = "REPLY", [8] = "ACKS",
    [0x9] = "PUT", [0xa] = "GET", [0xb] = "GETPUT", [0xe] = "ACK", [0xf] = "REPLY",
}
local RESPONSES = { [0x6] = true, [0x7] = true, [0xe] = true, [0xf] = true }
local ACKNOWLEDGEMENTS = 8
local FIRST_OF_PORTALS3 = 9
local INTERFACE = {
    [0] = "non-matching, physical", "matching, physical", "non-matching, logical",
    "matching, logical",
}
local ACK = { [0] = "none", [1] = "full", [2] = "counting", [3] = "operation completed" }
local OPERATION = {
    [0] = "MIN", "MAX", "SUM", "PROD", "LOR", "LAND", "BOR", "BAND", "LXOR", "BXOR", "SWAP",
    "CSWAP", "CSWAP_NE", "CSWAP_LE", "CSWAP_LT", "CSWAP_GE", "CSWAP_GT", "MSWAP",
}
local DATATYPE = {
    [0] = "INT8_T", "UINT8_T", "INT16_T", "UINT16_T", "INT32_T", "UINT32_T", "FLOAT", "INT64_T",
    "UINT64_T", "DOUBLE", "FLOAT_COMPLEX", "DOUBLE_COMPLEX", "LONG_DOUBLE",
    "LONG_DOUBLE_COMPLEX",
}
local FAIL = {
    [0] = "OK", "UNDELIVERABLE", "DROPPED", "PT_DISABLED", "PERM_VIOLATION", "OP_VIOLATION",
    "NO_MATCH", "SEGV",
}
local LIST = { [0] = "priority", [1] = "overflow" }

local CCI = {
    "CONNECT", "ACCEPT", "REJECT", "ESTABLISHED", "MESSAGE", "UNRELIABLE", "ACK", "NOT READY",
    "READY", "SKIP", "RMA", "RMA DONE", "RESET", "PROBE", "ALIVE",
}

-- The six words ----------------------------------------------------------------------------

local portals = Proto("portals", "Portals message")
local f = portals.fields
f.protocol = ProtoField.string("portals.protocol", "Protocol")
f.verb = ProtoField.string("portals.verb", "Verb")
f.kind = ProtoField.uint8("portals.kind", "Kind", base.HEX)
f.flags = ProtoField.uint8("portals.flags", "Flags", base.HEX)
f.interface = ProtoField.uint8("portals.interface", "Interface", base.DEC, INTERFACE, 0x3)
f.interface3 = ProtoField.uint8("portals.interface3", "Interface", base.DEC, nil, 0x3)
f.ack = ProtoField.uint8("portals.ack_req", "Acknowledgement requested", base.DEC, ACK, 0xc)
f.rendezvous = ProtoField.bool("portals.rendezvous", "Body stays with the initiator", 8, nil, 0x10)
f.silent = ProtoField.bool("portals.silent", "Only ends the loan of the body", 8, nil, 0x4)
f.placed = ProtoField.bool("portals.placed", "Target has written the data", 8, nil, 0x10)
f.pt_index = ProtoField.uint16("portals.pt_index", "Portal table index")
f.token = ProtoField.uint32("portals.token", "Operation", base.HEX)
f.rank = ProtoField.uint32("portals.rank", "Rank of the initiator")
f.jid = ProtoField.uint32("portals.jid", "Job of the initiator")
f.length = ProtoField.uint64("portals.length", "Requested length")
f.mlength = ProtoField.uint64("portals.mlength", "Manipulated length")
f.operation = ProtoField.uint8("portals.operation", "Operation on the data", base.DEC, OPERATION)
f.datatype = ProtoField.uint8("portals.datatype", "Datatype", base.DEC, DATATYPE)
f.ac_index = ProtoField.uint16("portals.ac_index", "Access control table index")
f.fail = ProtoField.uint8("portals.ni_fail_type", "Failure", base.DEC, FAIL)
f.list = ProtoField.uint8("portals.ptl_list", "Matched in list", base.DEC, LIST)
f.match_bits = ProtoField.uint64("portals.match_bits", "Match bits", base.HEX)
f.remote_offset = ProtoField.uint64("portals.remote_offset", "Offset at the target")
f.hdr_data = ProtoField.uint64("portals.hdr_data", "Header data", base.HEX)
f.cci = ProtoField.string("portals.cci", "CCI frame")
f.word = ProtoField.uint64("portals.word", "Word", base.HEX)

local is_malformed = ProtoExpert.new("portals.malformed", "No Portals message",
    expert.group.MALFORMED, expert.severity.ERROR)
local is_failed = ProtoExpert.new("portals.failed", "The operation failed",
    expert.group.RESPONSE_CODE, expert.severity.WARN)
portals.experts = { is_malformed, is_failed }

local WORDS_BYTES = 48

-- Adds a request's fields; returns what the info column says of it.
local function request(words, tree, flags, kind)
    local is_portals3 = kind >= FIRST_OF_PORTALS3
    flags:add(f.ack, words(5, 1))
    flags:add(f.rendezvous, words(5, 1))
    tree:add_le(f.pt_index, words(6, 2))
    tree:add_le(f.token, words(8, 4))
    tree:add_le(is_portals3 and f.jid or f.rank, words(12, 4))
    tree:add_le(f.length, words(16, 6), words(16, 6):le_uint64())
    local operation = ""
    if is_portals3 then
        tree:add_le(f.ac_index, words(22, 2))
    elseif kind >= 3 then
        tree:add(f.operation, words(22, 1))
        tree:add(f.datatype, words(23, 1))
        operation = string.format(" %s %s", OPERATION[words(22, 1):uint()] or "?",
            DATATYPE[words(23, 1):uint()] or "?")
    end
    tree:add_le(f.match_bits, words(24, 8))
    tree:add_le(f.remote_offset, words(32, 8))
    tree:add_le(f.hdr_data, words(40, 8))
    local info = string.format("%s pt %d bits 0x%s %s B%s", VERB[kind], words(6, 2):le_uint(),
        words(24, 8):le_uint64():tohex():gsub("^0+(%x)", "%1"), words(16, 6):le_uint64(),
        operation)
    if bit.band(words(5, 1):uint(), 0x10) ~= 0 then
        info = info .. " rendezvous"
    end
    return info
end

local function response(words, tree, flags, kind)
    flags:add(f.silent, words(5, 1))
    flags:add(f.placed, words(5, 1))
    tree:add_le(f.token, words(8, 4))
    tree:add_le(f.mlength, words(16, 6), words(16, 6):le_uint64())
    tree:add(f.fail, words(22, 1))
    if kind < FIRST_OF_PORTALS3 then
        tree:add(f.list, words(23, 1))
    end
    tree:add_le(f.remote_offset, words(32, 8))
    local info = string.format("%s %s B", VERB[kind], words(16, 6):le_uint64())
    local fail = words(22, 1):uint()
    if fail ~= 0 then
        info = string.format("%s failed: %s", info, FAIL[fail] or fail)
        tree:add_proto_expert_info(is_failed)
    end
    return info
end

-- Adds the operations that were acknowledged together, each named in half a word.
local function acknowledgements(words, tree, _, kind)
    local count = 0
    for at = 8, WORDS_BYTES - 4, 4 do
        if words(at, 4):le_uint() == 0 then
            break
        end
        tree:add_le(f.token, words(at, 4))
        count = count + 1
    end
    return string.format("%s of %d puts", VERB[kind], count)
end

-- Adds the message in six words; returns its summary.
local function message(words, parent)
    local kind = words(4, 1):uint()
    local tree = parent:add(portals, words)
    if portals.prefs.is_cci then
        local name = CCI[kind] or "?"
        tree:add(f.cci, words(4, 1), name)
        for at = 0, WORDS_BYTES - 8, 8 do
            tree:add_le(f.word, words(at, 8))
        end
        return "CCI " .. name
    end
    local verb = VERB[kind]
    if not verb then
        tree:add_proto_expert_info(is_malformed)
        return "no Portals message"
    end
    local is_portals3 = kind >= FIRST_OF_PORTALS3
    tree:add(f.protocol, words(4, 1), is_portals3 and "Portals 3.3" or "Portals 4")
    tree:add(f.verb, words(4, 1), verb)
    tree:add(f.kind, words(4, 1))
    local flags = tree:add(f.flags, words(5, 1))
    flags:add(is_portals3 and f.interface3 or f.interface, words(5, 1))
    local add = RESPONSES[kind] and response or request
    if kind == ACKNOWLEDGEMENTS then
        add = acknowledgements
    end
    local info = add(words, tree, flags, kind)
    tree:append_text(": " .. info)
    return info
end

portals.prefs.is_cci = Pref.bool("Messages are CCI's", false,
    "The words of a datagram don't say whether they are of Portals or CCI")

function portals.dissector() end

-- Captured messages ------------------------------------------------------------------------

local captured = Proto("lintel", "Lintel message")
local c = captured.fields
c.version = ProtoField.uint8("lintel.version", "Version")
c.what = ProtoField.uint8("lintel.what", "What", base.DEC, WHAT)
c.place = ProtoField.uint8("lintel.body.place", "Body", base.DEC, PLACE)
c.uid = ProtoField.uint32("lintel.uid", "User of the sender")
c.source_nid = ProtoField.ipv4("lintel.src.nid", "Source node")
c.source_pid = ProtoField.uint32("lintel.src.pid", "Source process")
c.destination_nid = ProtoField.ipv4("lintel.dst.nid", "Destination node")
c.destination_pid = ProtoField.uint32("lintel.dst.pid", "Destination process")
c.length = ProtoField.uint64("lintel.body.length", "Bytes of the body")
c.body = ProtoField.bytes("lintel.body", "Body")

local HEADER_BYTES = 32

-- Two fields that name a process; returns its name. A node's number is its IPv4 address.
local function process(range, tree, nid, pid, fields)
    local node = range(nid.at, 4):le_ipv4()
    local number = pid.bytes == 2 and range(pid.at, 2):le_uint() or range(pid.at, 4):le_uint()
    tree:add_le(fields[1], range(nid.at, 4))
    tree:add_le(fields[2], range(pid.at, pid.bytes))
    return string.format("%s/%d", node, number)
end

function captured.dissector(buffer, packet, root)
    if buffer:len() < HEADER_BYTES or buffer(0, 1):uint() ~= 1 then
        return 0
    end
    packet.cols.protocol = "Portals"
    local tree = root:add(captured, buffer())
    tree:add(c.version, buffer(0, 1))
    tree:add(c.what, buffer(1, 1))
    tree:add(c.place, buffer(2, 1))
    tree:add_le(c.uid, buffer(4, 4))
    local source = process(buffer, tree, { at = 8 }, { at = 12, bytes = 4 },
        { c.source_nid, c.source_pid })
    local destination = process(buffer, tree, { at = 16 }, { at = 20, bytes = 4 },
        { c.destination_nid, c.destination_pid })
    tree:add_le(c.length, buffer(24, 8))
    packet.cols.src = source
    packet.cols.dst = destination
    local what = buffer(1, 1):uint()
    local name = WHAT[what] or "?"
    tree:append_text(string.format(", %s, %s → %s", name, source, destination))
    if what > LAST_WITH_WORDS or buffer:len() < HEADER_BYTES + WORDS_BYTES then
        local length = buffer(24, 8):le_uint64()
        local is_moved = what == 4 or what == 5
        packet.cols.info = is_moved and string.format("%s %s B", name, length) or name
        return buffer:len()
    end
    local info = message(buffer(HEADER_BYTES, WORDS_BYTES), root)
    packet.cols.info = string.format("%s: %s", name, info)
    local at = HEADER_BYTES + WORDS_BYTES
    if buffer:len() > at then
        tree:add(c.body, buffer(at))
    end
    return buffer:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, captured)

-- Datagrams --------------------------------------------------------------------------------

local datagram = Proto("lintel_udp", "Lintel datagram")
local d = datagram.fields
d.version = ProtoField.uint8("lintel_udp.version", "Version")
d.kind = ProtoField.uint8("lintel_udp.kind", "Kind", base.DEC, PACKET)
d.class = ProtoField.uint8("lintel_udp.class", "Class", base.DEC, CLASS)
d.flags = ProtoField.uint8("lintel_udp.flags", "Flags", base.HEX)
d.first = ProtoField.bool("lintel_udp.flags.first", "First part of a message", 8, nil, 0x1)
d.last = ProtoField.bool("lintel_udp.flags.last", "Last part of a message", 8, nil, 0x2)
d.ack_requested = ProtoField.bool("lintel_udp.flags.ack_requested", "To be acknowledged at once",
    8, nil, 0x4)
d.summed = ProtoField.bool("lintel_udp.flags.summed", "Payload has a checksum", 8, nil, 0x8)
d.void = ProtoField.bool("lintel_udp.flags.void", "Payload was recalled", 8, nil, 0x10)
d.gap = ProtoField.bool("lintel_udp.flags.gap", "A packet is missing", 8, nil, 0x20)
d.uid = ProtoField.uint32("lintel_udp.uid", "User of the sender")
d.source_nid = ProtoField.ipv4("lintel_udp.src.nid", "Source node")
d.destination_nid = ProtoField.ipv4("lintel_udp.dst.nid", "Destination node")
d.source_pid = ProtoField.uint16("lintel_udp.src.pid", "Source process")
d.destination_pid = ProtoField.uint16("lintel_udp.dst.pid", "Destination process")
d.window = ProtoField.uint32("lintel_udp.window", "Bytes that the sender can buffer")
d.incarnation = ProtoField.uint64("lintel_udp.incarnation", "Incarnation of the sender", base.HEX)
d.peer_incarnation = ProtoField.uint64("lintel_udp.peer_incarnation",
    "Incarnation of the receiver", base.HEX)
d.sequence = ProtoField.uint32("lintel_udp.sequence", "Sequence number")
d.acknowledged = ProtoField.uint32("lintel_udp.acknowledged", "Next one that is expected")
d.selective = ProtoField.uint64("lintel_udp.selective", "Arrived beyond", base.HEX)
d.latest = ProtoField.uint64("lintel_udp.latest", "Latest incarnation of the receiver", base.HEX)
d.checksum = ProtoField.uint32("lintel_udp.checksum", "CRC-32C of the payload", base.HEX)
d.length = ProtoField.uint32("lintel_udp.length", "Bytes of payload")
d.total = ProtoField.uint64("lintel_udp.total", "Bytes of the message")
d.offset = ProtoField.uint64("lintel_udp.offset", "Offset of the payload")
d.tag = ProtoField.bytes("lintel_udp.authenticator", "Authenticator")
d.payload = ProtoField.bytes("lintel_udp.payload", "Payload")

local UDP_VERSION = 4
local BASE_BYTES, GAP_BYTES, RESET_BYTES, PARTS_BYTES, TAG_BYTES = 56, 8, 8, 16, 16
local FIRST, LAST, GAP, ALL_FLAGS = 0x1, 0x2, 0x20, 0x3f

-- Where the datagram that begins at `at` has its gap, latest incarnation, parts, authenticator, payload and end; nothing
-- if it can't be one.
local function layout(buffer, at)
    if buffer:len() < at + BASE_BYTES + TAG_BYTES or buffer(at, 1):uint() ~= UDP_VERSION then
        return nil
    end
    local kind, class = buffer(at + 1, 1):uint(), buffer(at + 2, 1):uint()
    local flags = buffer(at + 3, 1):uint()
    if not PACKET[kind] or not CLASS[class] or bit.band(flags, bit.bnot(ALL_FLAGS)) ~= 0 then
        return nil
    end
    local length = buffer(at + 52, 4):le_uint()
    local next = at + BASE_BYTES
    local found = {}
    if bit.band(flags, GAP) ~= 0 then
        found.gap, next = next, next + GAP_BYTES
    end
    if kind == 1 then
        local is_first = bit.band(flags, FIRST) ~= 0
        if not (is_first and bit.band(flags, LAST) ~= 0) then
            found.parts, next = next, next + PARTS_BYTES
        end
        if is_first then
            found.words, next = next, next + WORDS_BYTES
        end
    elseif length ~= 0 then
        return nil
    elseif kind == 5 then
        found.latest, next = next, next + RESET_BYTES
    end
    found.tag, found.payload, found.length = next, next + TAG_BYTES, length
    found.stop = found.payload + length
    return found
end

local function add_base(one, tree)
    tree:add(d.version, one(0, 1))
    tree:add(d.kind, one(1, 1))
    tree:add(d.class, one(2, 1))
    local flags = tree:add(d.flags, one(3, 1))
    for _, flag in ipairs({ d.first, d.last, d.ack_requested, d.summed, d.void, d.gap }) do
        flags:add(flag, one(3, 1))
    end
    tree:add_le(d.uid, one(4, 4))
    local source = process(one, tree, { at = 8 }, { at = 16, bytes = 2 },
        { d.source_nid, d.source_pid })
    local destination = process(one, tree, { at = 12 }, { at = 18, bytes = 2 },
        { d.destination_nid, d.destination_pid })
    tree:add_le(d.window, one(20, 4))
    tree:add_le(d.incarnation, one(24, 8))
    tree:add_le(d.peer_incarnation, one(32, 8))
    tree:add_le(d.sequence, one(40, 4))
    tree:add_le(d.acknowledged, one(44, 4))
    tree:add_le(d.checksum, one(48, 4))
    tree:add_le(d.length, one(52, 4))
    tree:append_text(string.format(", %s → %s", source, destination))
end

-- Adds the datagram; returns its summary.
local function add(buffer, at, found, root)
    local stop = math.min(found.stop, buffer:len())
    local one = buffer(at, stop - at)
    local kind = one(1, 1):uint()
    local tree = root:add(datagram, one)
    add_base(one, tree)
    if found.gap and buffer:len() >= found.gap + GAP_BYTES then
        tree:add_le(d.selective, buffer(found.gap, GAP_BYTES))
    end
    if found.latest and buffer:len() >= found.latest + RESET_BYTES then
        tree:add_le(d.latest, buffer(found.latest, RESET_BYTES))
    end
    local info = PACKET[kind]
    if found.parts then
        tree:add_le(d.total, buffer(found.parts, 8))
        tree:add_le(d.offset, buffer(found.parts + 8, 8))
        info = string.format("%s, part at %s", info, buffer(found.parts + 8, 8):le_uint64())
    end
    if found.words then
        info = message(buffer(found.words, WORDS_BYTES), root)
    end
    if buffer:len() >= found.payload then
        tree:add(d.tag, buffer(found.tag, TAG_BYTES))
    end
    if stop > found.payload then
        tree:add(d.payload, buffer(found.payload, stop - found.payload))
    end
    if kind == 1 then
        info = string.format("%s [%d]", info, one(40, 4):le_uint())
    elseif kind == 2 then
        info = string.format("%s [%d]", info, one(44, 4):le_uint())
    end
    return info
end

-- Within a machine the system hands on several datagrams as one packet.
function datagram.dissector(buffer, packet, root)
    local at, infos = 0, {}
    local found = layout(buffer, at)
    while found do
        infos[#infos + 1] = add(buffer, at, found, root)
        at = found.stop
        found = layout(buffer, at)
    end
    packet.cols.protocol = "Lintel UDP"
    packet.cols.info = table.concat(infos, "; ")
    return math.min(at, buffer:len())
end

-- A datagram is one of ours if it has our version and a known kind, and names the ports that
-- it goes between: a process is a port.
local function is_ours(buffer, packet)
    local found = layout(buffer, 0)
    return found ~= nil
        and buffer(16, 2):le_uint() == packet.src_port
        and buffer(18, 2):le_uint() == packet.dst_port
        and (found.stop <= buffer:reported_len())
end

datagram:register_heuristic("udp", function(buffer, packet, root)
    if not is_ours(buffer, packet) then
        return false
    end
    datagram.dissector(buffer, packet, root)
    return true
end)
