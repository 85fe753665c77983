//! Plays one story for each seed, and says how many.

use seriatim::Clock;
use seriatim::SystemClock;

/// Plays `SERIATIM_SEED` alone, or as many seeds as `SERIATIM_SEEDS` says or is usual.
pub(crate) async fn play<F>(name: &str, usual: u64, story: impl Fn(u64) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("SERIATIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SERIATIM_SEEDS").unwrap_or(usual),
    };
    let (clock, count) = (SystemClock::default(), seeds.end - seeds.start);
    for seed in seeds {
        if let Err(error) = tokio::spawn(story(seed)).await {
            panic!("SERIATIM_SEED={seed} fails: {error}");
        }
    }
    let seconds = clock.elapsed().as_secs_f64();
    println!(
        "reliability: {{\"name\":\"{name}\",\"counts\":{{\"seeds\":{count}}},\"seconds\":{seconds:.1},\"failures\":0}}"
    );
}
