//! The web page, asked as a browser asks: every screen, every action, keys, and hostile names; then in a real Chromium.

mod acting;
mod axe;
mod browser;
#[cfg(feature = "cluster")]
mod cluster;
mod fixture;
mod keys;
mod many;
mod screens;
mod shown;
mod stock;
