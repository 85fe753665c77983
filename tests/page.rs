//! The web page, asked as a browser asks: every screen, every action, keys, and hostile names; then in a real Chromium.

#[path = "page/acting.rs"]
mod acting;
#[path = "page/axe.rs"]
mod axe;
#[path = "page/browser.rs"]
mod browser;
#[cfg(feature = "cluster")]
#[path = "page/cluster.rs"]
mod cluster;
#[path = "page/fixture.rs"]
mod fixture;
#[path = "page/keys.rs"]
mod keys;
#[path = "page/many.rs"]
mod many;
#[cfg(feature = "cluster")]
#[path = "cluster/nats_program.rs"]
mod nats_program;
#[path = "page/screens.rs"]
mod screens;
#[path = "page/shown.rs"]
mod shown;
#[path = "page/stock.rs"]
mod stock;
