//! The command line.

mod arguments;
mod audit;
mod backup;
mod bench;
mod bench_table;
mod blocked;
mod bulk;
mod check;
mod cluster;
mod command;
mod compact;
mod completions;
mod confirm;
mod connect;
mod cron;
mod cursors;
mod definitions;
mod demo_git;
#[cfg(feature = "cluster")]
mod dev_cluster;
mod dlq;
mod doctor;
mod durable_file;
mod export;
mod failure;
mod feed;
mod gap;
mod import_source;
mod interrupt;
mod limits;
mod lines;
mod listing;
mod logs;
mod moment;
mod next;
mod operate;
mod operator_call;
mod out;
mod pretty;
mod progress;
mod purge;
mod queues;
mod receive;
mod redrive;
mod restore;

mod schedule;
mod send;
mod serve;
mod settle;
mod show;
mod show_history;
mod show_message;
mod show_workflow;
#[cfg(feature = "otlp")]
mod spans;
mod strip;
mod table;
mod tail;
mod top;
mod topics;
mod verify;
mod word;

pub(crate) use crate::cli::command::run;
