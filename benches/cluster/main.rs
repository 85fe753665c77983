//! What a cluster costs and how fast it recovers: NATS servers, nodes and load on one machine.
//!
//! `cargo bench --features cluster --bench cluster`, with `nats-server` on the path or in `NATS_SERVER`. The contenders take
//! turns; each rate is the median of five rounds. `-- rates`, `-- takeover` or `-- idle` asks for one part only.

mod load;
mod log_alone;
mod node;
mod servers;
mod takeover;

use std::time::Duration;

use load::Contender;
use servers::NatsServers;

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["node", name, folder, partitions, servers] => node::run(name, folder, partitions, servers),
        [] => {
            rates();
            takeover();
            idle();
        }
        ["rates"] => rates(),
        ["rates", number] => one_rate(number.parse().expect("the number of a contender")),
        ["takeover"] => takeover(),
        ["idle"] => idle(),
        _ => eprintln!("say rates, takeover, idle, or nothing for all of them"),
    }
}

/// Messages sent, handed out and completed.
fn rates() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut taken: [Vec<f64>; Contender::ALL.len()] = Default::default();
    for round in 1..=ROUNDS {
        for (contender, taken) in Contender::ALL.into_iter().zip(&mut taken) {
            let rate = runtime.block_on(load::round(contender));
            eprintln!("round {round}: {:<46} {rate:>8.0} messages a second", contender.name());
            taken.push(rate);
        }
    }
    let rates = taken.map(median);
    println!(
        "sent, received and completed in batches of {}, medians of {ROUNDS} rounds, three NATS servers",
        load::BATCH
    );
    for (contender, rate) in Contender::ALL.into_iter().zip(rates) {
        let base = contender.base().map(|base| (base, rates[base as usize]));
        let ratio =
            base.map(|(base, of)| format!(", {:.2} of {}", rate / of, base.name())).unwrap_or_default();
        println!("{:<46} {rate:>8.0} messages a second{ratio}", contender.name());
    }
}

/// One round of one contender, to be looked at closely.
fn one_rate(number: usize) {
    let contender = Contender::ALL[number];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    println!("{}: {:.0} messages a second", contender.name(), runtime.block_on(load::round(contender)));
}

/// How long nobody answers for a partition whose owner is killed.
fn takeover() {
    for lease in [Duration::from_secs(1), Duration::from_millis(500)] {
        let mut taken = takeover::after_kills(lease);
        taken.sort();
        let at = |share: f64| taken[((taken.len() - 1) as f64 * share).round() as usize];
        println!(
            "takeover after kill -9, lease of {lease:?}, {} partitions taken over: p50 {:?}, p99 {:?}, longest {:?}",
            taken.len(),
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
}

/// What 64 partitions cost while nothing is asked.
fn idle() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let servers = runtime.block_on(NatsServers::start(3));
    let cores = takeover::idle_cores(&servers, 64);
    println!("64 partitions on three nodes, nothing asked: {cores:.3} cores for all nodes");
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
