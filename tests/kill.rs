//! Real processes that are killed and stopped, and real disks that are full or read-only: nothing acknowledged is lost,
//! doubled or overtaken.
#![cfg(unix)]

#[path = "model/random.rs"]
mod random;

mod kill {
    mod book;
    mod child;
    mod disk;
    mod disks;
    mod drain;
    mod hold;
    mod kills;
    mod ledger;
    mod name;
    mod output_lines;
    mod plan;
    mod process;
    mod receiver;
    mod reliability;
    mod report;
    mod sender;
    mod settler;
    mod stock;
    mod stops;
    mod verdict;
    mod verdicts;
    mod victim;
    mod zombie;
}
