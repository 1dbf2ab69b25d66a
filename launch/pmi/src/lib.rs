//! Process management interface: PMI-1 parser, server and client.
