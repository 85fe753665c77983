//! The web page, asked as a browser asks: every screen, every action, keys, and hostile names; then in a real Chromium.

#[path = "page/acting.rs"]
mod acting;
#[path = "page/axe.rs"]
mod axe;
#[path = "page/browser.rs"]
mod browser;
#[path = "page/fixture.rs"]
mod fixture;
#[path = "page/keys.rs"]
mod keys;
#[path = "page/many.rs"]
mod many;
#[path = "page/screens.rs"]
mod screens;
#[path = "page/shown.rs"]
mod shown;
#[path = "page/stock.rs"]
mod stock;
