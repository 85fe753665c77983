//! A queue, and clients that buffer what they are sent, simulated with and without the prefetch window.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;

use crate::id::SequenceNumber;
use crate::service_bus::window::DeliveryPlace;
use crate::service_bus::window::PrefetchWindow;

/// What one client does; times in milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) credit: usize,
    pub(crate) handlers: usize,
    /// How long handling takes at least, and at most.
    pub(crate) lasts: (u64, u64),
    /// How long what is said is on its way, in each direction.
    pub(crate) delay: u64,
    /// Whether it drops, without a word, what its own clock says is lost.
    pub(crate) is_silent: bool,
    /// After how much of a lock it is renewed while it is handled; in percent.
    pub(crate) renews: Option<u64>,
    /// How many of a thousand messages it never settles.
    pub(crate) forgets: u64,
    /// How often it begins again, and loses what it has in hand.
    pub(crate) restarts: Option<u64>,
    /// When it does nothing, and for how long.
    pub(crate) pause: Option<(u64, u64)>,
    pub(crate) start: u64,
    /// How many messages it settles at once.
    pub(crate) batch: usize,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) seed: u64,
    pub(crate) messages: usize,
    pub(crate) lock: u64,
    pub(crate) clients: Vec<Client>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) completed: usize,
    pub(crate) dead_letters: usize,
    /// The most locks that one message lost.
    pub(crate) lost_max: u32,
    /// The most locks that one message lost on one link without being handled there.
    pub(crate) unseen_max: u32,
    pub(crate) handled: usize,
    /// The longest time from the start of handling to the arrival of its settlement; for ever, if one never came.
    pub(crate) slowest: u64,
    pub(crate) ended_at: u64,
}

const DELIVERIES_MAX: u32 = 10;
pub(crate) const ENDS_AT: u64 = 20_000_000;
const SENT_AT_ONCE_MAX: usize = 256;
/// For how many locks a new link has the last window of its queue.
const INHERITED_LOCKS: u64 = crate::limits::SERVICE_BUS_WINDOW_KEPT_LOCKS;

/// Small numbers that look random, the same each time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn between(&mut self, (low, high): (u64, u64)) -> u64 {
        low + self.below(high - low + 1)
    }
}

#[derive(Clone, Debug)]
enum Event {
    Up(usize),
    Restart(usize),
    Pause(usize),
    Resume(usize),
    Wake,
    Arrived { link: usize, life: u32, delivery: usize },
    Renewed { link: usize, life: u32, delivery: usize },
    Handled { link: usize, life: u32, delivery: usize },
    Settled { link: usize, life: u32, deliveries: Vec<usize> },
    Expired(usize),
}

struct Delivery {
    message: usize,
    link: usize,
    life: u32,
    place: Option<DeliveryPlace>,
    is_live: bool,
    began_at: Option<u64>,
    sent_at: u64,
    until: u64,
}

struct Link {
    client: Client,
    /// How often it has begun.
    life: u32,
    window: Option<PrefetchWindow>,
    on_its_way: usize,
    buffer: VecDeque<usize>,
    busy: HashSet<usize>,
    done: Vec<usize>,
    paused_until: u64,
    wakes_at: u64,
}

struct World {
    now: u64,
    lock: u64,
    has_windows: bool,
    dice: Dice,
    events: BTreeMap<(u64, u64), Event>,
    event_ever: u64,
    ready: BTreeSet<usize>,
    lost: Vec<u32>,
    unseen: HashMap<(usize, u32, usize), u32>,
    deliveries: Vec<Delivery>,
    links: Vec<Link>,
    up: BTreeSet<usize>,
    /// The queue's last window, and when it was made.
    inherited: Option<(usize, u64)>,
    turn: usize,
    outcome: Outcome,
}

/// Plays a case.
pub(crate) fn play(case: &Case, has_windows: bool) -> Outcome {
    let links = case.clients.iter().map(|client| Link {
        client: client.clone(),
        life: 0,
        window: None,
        on_its_way: 0,
        buffer: VecDeque::new(),
        busy: HashSet::new(),
        done: Vec::new(),
        paused_until: 0,
        wakes_at: 0,
    });
    let mut world = World {
        now: 0,
        lock: case.lock,
        has_windows,
        dice: Dice(case.seed),
        events: BTreeMap::new(),
        event_ever: 0,
        ready: (0..case.messages).collect(),
        lost: vec![0; case.messages],
        unseen: HashMap::new(),
        deliveries: Vec::new(),
        links: links.collect(),
        up: BTreeSet::new(),
        inherited: None,
        turn: 0,
        outcome: Outcome::default(),
    };
    for (link, client) in case.clients.iter().enumerate() {
        world.push(client.start, Event::Up(link));
    }
    while world.now < ENDS_AT && world.outcome.completed + world.outcome.dead_letters < case.messages {
        let Some(((now, _), event)) = world.events.pop_first() else { break };
        world.now = now;
        world.happen(event);
        world.offer();
        for link in world.up.clone() {
            world.begin(link);
        }
    }
    // What was begun and not settled; at the end, what is under way has time.
    let is_settled = |delivery: &Delivery| match delivery.began_at {
        Some(began_at) => world.now < began_at + world.lock,
        None => true,
    };
    if !world.deliveries.iter().all(is_settled) {
        world.outcome.slowest = u64::MAX;
    }
    world.outcome.ended_at = world.now;
    world.outcome.lost_max = world.lost.iter().copied().max().unwrap_or_default();
    world.outcome.unseen_max = world.unseen.values().copied().max().unwrap_or_default();
    world.outcome
}

impl World {
    fn push(&mut self, at: u64, event: Event) {
        self.event_ever += 1;
        self.events.insert((at, self.event_ever), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Up(link) => {
                self.up.insert(link);
                self.begin_life(link);
                if let Some((at, _)) = self.links[link].client.pause {
                    self.push(self.now + at, Event::Pause(link));
                }
            }
            Event::Restart(link) => self.begin_life(link),
            Event::Pause(link) => {
                let (_, lasts) = self.links[link].client.pause.expect("it pauses");
                self.links[link].paused_until = self.now + lasts;
                self.push(self.now + lasts, Event::Resume(link));
            }
            Event::Resume(link) => self.begin(link),
            Event::Wake => {}
            Event::Arrived { link: index, life, delivery } => {
                let link = &mut self.links[index];
                if life == link.life {
                    link.on_its_way -= 1;
                    link.buffer.push_back(delivery);
                    self.begin(index);
                }
            }
            Event::Renewed { link, life, delivery } => self.renew(link, life, delivery),
            Event::Handled { link, life, delivery } => self.finish(link, life, delivery),
            Event::Settled { link, life, deliveries } => {
                deliveries.into_iter().for_each(|delivery| self.settle(link, life, delivery));
            }
            Event::Expired(delivery) => self.expire(delivery),
        }
    }

    fn begin_life(&mut self, index: usize) {
        let (now, lock) = (self.now, self.lock);
        let inherited = self.inherited.filter(|(_, at)| now - at < INHERITED_LOCKS * lock);
        let link = &mut self.links[index];
        link.life += 1;
        let mut window = PrefetchWindow::new(now, lock, inherited.map(|(size, _)| size));
        window.note_credit(link.client.credit);
        link.window = Some(window);
        (link.on_its_way, link.paused_until, link.wakes_at) = (0, 0, 0);
        link.buffer.clear();
        link.busy.clear();
        link.done.clear();
        if let Some(after) = link.client.restarts {
            self.push(now + after, Event::Restart(index));
        }
    }

    /// Sends what is ready to who has credit, and room.
    fn offer(&mut self) {
        let mut has_sent = true;
        while has_sent && !self.ready.is_empty() {
            has_sent = false;
            for next in 0..self.links.len() {
                let link = (self.turn + next) % self.links.len();
                if self.up.contains(&link) {
                    has_sent |= self.send(link);
                }
            }
            self.turn += 1;
        }
    }

    fn send(&mut self, index: usize) -> bool {
        let mut sent = 0;
        while let Some(message) = self.ready.first().copied() {
            let link = &mut self.links[index];
            if sent >= SENT_AT_ONCE_MAX || link.on_its_way + link.buffer.len() >= link.client.credit {
                break;
            }
            let (until, delivery) = (self.now + self.lock, self.deliveries.len());
            let window = link.window.as_mut().filter(|_| self.has_windows);
            let place = match window {
                None => None,
                Some(window) => {
                    if !window.admits(self.now, number(message), self.lost[message] as usize) {
                        let wakes_at = window.wakes_at();
                        if let Some(at) = wakes_at.filter(|at| *at > self.now && link.wakes_at <= self.now) {
                            link.wakes_at = at;
                            self.push(at, Event::Wake);
                        }
                        break;
                    }
                    Some(window.add(number(message), until))
                }
            };
            link.on_its_way += 1;
            let (life, delay) = (link.life, link.client.delay);
            self.ready.pop_first();
            let (is_live, began_at, sent_at) = (true, None, self.now);
            self.deliveries.push(Delivery {
                message,
                link: index,
                life,
                place,
                is_live,
                began_at,
                sent_at,
                until,
            });
            self.push(until, Event::Expired(delivery));
            self.push(self.now + delay, Event::Arrived { link: index, life, delivery });
            sent += 1;
        }
        sent > 0
    }

    /// The client begins to handle what it has in its buffer.
    fn begin(&mut self, index: usize) {
        let now = self.now;
        while now >= self.links[index].paused_until
            && self.links[index].busy.len() < self.links[index].client.handlers
            && let Some(delivery) = self.links[index].buffer.pop_front()
        {
            let client = &self.links[index].client;
            if client.is_silent && now >= self.deliveries[delivery].sent_at + self.lock {
                continue;
            }
            let (renews, lasts, life) = (client.renews, client.lasts, self.links[index].life);
            self.links[index].busy.insert(delivery);
            self.deliveries[delivery].began_at = Some(now);
            if let Some(percent) = renews {
                let at = now + self.lock * percent / 100;
                self.push(at, Event::Renewed { link: index, life, delivery });
            }
            let lasts = self.dice.between(lasts);
            self.push(now + lasts, Event::Handled { link: index, life, delivery });
        }
    }

    fn renew(&mut self, index: usize, life: u32, delivery: usize) {
        let (now, lock) = (self.now, self.lock);
        let link = &mut self.links[index];
        if life != link.life || !link.busy.contains(&delivery) {
            return;
        }
        if now < link.paused_until {
            let at = link.paused_until;
            return self.push(at, Event::Renewed { link: index, life, delivery });
        }
        let of = &mut self.deliveries[delivery];
        if of.is_live {
            of.until = now + lock;
            if let (Some(window), Some(place)) = (&mut link.window, of.place) {
                window.note_renewed(now, place, of.until);
            }
            let percent = link.client.renews.expect("it renews");
            self.push(now + lock, Event::Expired(delivery));
            self.push(now + lock * percent / 100, Event::Renewed { link: index, life, delivery });
        }
    }

    fn finish(&mut self, index: usize, life: u32, delivery: usize) {
        let link = &mut self.links[index];
        if life != link.life {
            return;
        }
        if self.now < link.paused_until {
            let at = link.paused_until;
            return self.push(at, Event::Handled { link: index, life, delivery });
        }
        link.busy.remove(&delivery);
        self.outcome.handled += 1;
        if self.dice.below(1_000) >= link.client.forgets {
            link.done.push(delivery);
            if link.done.len() >= link.client.batch || link.buffer.is_empty() {
                let deliveries = std::mem::take(&mut link.done);
                let at = self.now + link.client.delay;
                self.push(at, Event::Settled { link: index, life, deliveries });
            }
        }
        self.begin(index);
    }

    fn settle(&mut self, index: usize, life: u32, delivery: usize) {
        let (now, link) = (self.now, &mut self.links[index]);
        let of = &mut self.deliveries[delivery];
        let took = of.began_at.take().map_or(0, |began_at| now - began_at);
        self.outcome.slowest = self.outcome.slowest.max(took);
        let window = link.window.as_mut().filter(|_| life == link.life);
        let is_in_time = std::mem::take(&mut of.is_live);
        self.outcome.completed += usize::from(is_in_time);
        if let (Some(window), Some(place)) = (window, of.place) {
            window.note_activity(now, place);
            if is_in_time {
                window.note_settled(now, number(of.message));
            }
        }
    }

    fn expire(&mut self, delivery: usize) {
        let of = &mut self.deliveries[delivery];
        if !of.is_live || of.until > self.now {
            return;
        }
        of.is_live = false;
        self.lost[of.message] += 1;
        if of.began_at.is_none() {
            *self.unseen.entry((of.link, of.life, of.message)).or_default() += 1;
        }
        match self.lost[of.message] >= DELIVERIES_MAX {
            true => self.outcome.dead_letters += 1,
            false => drop(self.ready.insert(of.message)),
        }
        let link = &mut self.links[of.link];
        if let Some(window) = link.window.as_mut().filter(|_| of.life == link.life && of.place.is_some()) {
            let before = window.losses();
            window.expire(self.now);
            if window.losses() > before {
                self.inherited = window.size().map(|size| (size, self.now));
            }
        }
    }
}

fn number(message: usize) -> SequenceNumber {
    SequenceNumber::new(message as u64)
}
