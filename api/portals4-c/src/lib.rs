//! libportals.so.4: check, convert, call, map.
