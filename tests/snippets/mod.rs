//! Every snippet of the README and of the pages in `docs/` is built or run, or says above itself why it is not:
//! `<!-- not run: why -->`.

mod languages;
mod page;
mod runner;
