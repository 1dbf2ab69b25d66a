//! The only raw copy and atomic: user memory behind checked claims.
