//! A client of a running daemon, over HTTP.
