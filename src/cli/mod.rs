//! The command line.

mod arguments;
mod audit;
mod backup;
mod bench;
mod bench_table;
mod blocked;
mod bulk;
mod check;
mod command;
mod completions;
mod connect;
mod cron;
mod definitions;
mod demo_git;
mod dlq;
mod doctor;
mod export;
mod failure;
mod feed;
mod gap;
mod limits;
mod lines;
mod logs;
mod moment;
mod next;
mod operate;
mod out;
mod pretty;
mod progress;
mod queues;
mod receive;
mod redrive;
mod restore;

mod send;
mod serve;
mod settle;
mod show;
mod show_message;
mod show_workflow;
mod strip;
mod table;
mod tail;
mod verify;

pub(crate) use crate::cli::command::run;
