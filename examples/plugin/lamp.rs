//! lamp.rs - a game in Rust: the table of trawl_env.h (version 9) filled by hand.
//!
//!   trawl env build examples/plugin/lamp.rs
//!     (or rustc --edition 2021 --crate-type cdylib -O -Cpanic=abort lamp.rs -o lamp.so)
//!   trawl env check ./lamp.so && trawl train ./lamp.so
//!
//! One of four lamps is lit; press its button. Reward 1 if it is the right one; an episode is `presses` decisions.
//! Observation: the four lamps, 1 where it is lit. score = right presses, perf = score / presses.
//! The state is plain bytes, so that it is saved by being copied. The structs below are those of trawl_env.h.

use std::os::raw::{c_char, c_int, c_void};

#[repr(C)]
pub struct OptDef {
    key: *const c_char, written: *const c_char, kind: c_int, offset: usize, def: *const c_char, min: f64, max: f64, scale: c_int,
    sweep_min: f64, sweep_max: f64, sweep_factor: f64, choices: *const c_char, also: *const c_char,
    unit: *const c_char, help: *const c_char, depends: *const c_char,
}

#[repr(C)]
pub struct OptTable { section: *const c_char, title: *const c_char, defs: *const OptDef, n_defs: usize, settings_size: usize }

#[repr(C)]
pub struct About { summary: *const c_char, defaults: *const c_void, n_defaults: usize }

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Rng { key: u64, counter: u64 }

#[repr(C)]
pub struct Shape {
    obs_size: c_int, n_agents: c_int, n_heads: c_int, head_sizes: [c_int; 64], has_mask: bool, channels: c_int,
    height: c_int, width: c_int, may_truncate: bool, agents_end: bool, bytes: bool, undivided: bool, byte_scale: f32,
    n_floats: c_int, low: [f32; 64], high: [f32; 64],
}

#[repr(C)]
pub struct Log { episodes: f64, score: f64, perf: f64, ep_return: f64, ep_length: f64, limit: f64 }

#[repr(C)]
pub struct Io {
    actions: *const i32, reals: *const f32, rewards: *mut f32, terms: *mut u8, truncs: *mut u8, obs: *mut f32,
    final_obs: *mut f32, mask: *mut u8,
}

#[repr(C)]
pub struct Def {
    api_version: u32, def_bytes: u32, name: *const c_char, about: *const About, options: OptTable,
    shape: extern "C" fn(*const Def, *const Settings, *mut Shape, *mut c_void) -> c_int,
    reset_range: extern "C" fn(*const Settings, *mut State, Rng, usize, usize),
    observe_range: extern "C" fn(*const Settings, *const State, *mut f32, *mut u8, usize, usize),
    step_range: extern "C" fn(*const Settings, *mut State, *mut Log, *const Io, usize, usize),
    state_size: usize, track_at: usize, draw: *const c_void, open: *const c_void, close: *const c_void,
    saved_bytes: *const c_void, save: *const c_void, load: *const c_void, failed: *const c_void,
    outside_s: *const c_void, number_names: *const c_void, n_numbers: usize, take_numbers: *const c_void, begin_range: *const c_void,
    source: *const c_void,
}
unsafe impl Sync for Def {}
unsafe impl Sync for About {}
unsafe impl Sync for OptDef {}

#[repr(C)]
pub struct Settings { presses: i64 }

#[repr(C)]
pub struct State { random: u64, lit: i64, done: i64, right: i64 }

/// splitmix64: the next lamp.
fn light(state: &mut State) {
    state.random = state.random.wrapping_add(0x9e3779b97f4a7c15);
    let mut z = state.random;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d049bb133111eb);
    state.lit = ((z ^ (z >> 31)) % 4) as i64;
}

fn look(state: &State, obs: &mut [f32]) {
    for (i, value) in obs.iter_mut().enumerate() {
        *value = if i as i64 == state.lit { 1.0 } else { 0.0 };
    }
}

extern "C" fn shape(_: *const Def, _: *const Settings, shape: *mut Shape, _: *mut c_void) -> c_int {
    let shape = unsafe { &mut *shape };
    shape.obs_size = 4;
    shape.n_agents = 1;
    shape.n_heads = 1;
    shape.head_sizes[0] = 4;
    0
}

extern "C" fn reset(_: *const Settings, states: *mut State, root: Rng, from: usize, to: usize) {
    for i in from..to {
        let state = unsafe { &mut *states.add(i) };
        *state = State { random: root.key ^ (i as u64).wrapping_mul(0xd1342543de82ef95), lit: 0, done: 0, right: 0 };
        light(state);
    }
}

extern "C" fn observe(_: *const Settings, states: *const State, obs: *mut f32, _: *mut u8, from: usize, to: usize) {
    for i in from..to {
        unsafe { look(&*states.add(i), std::slice::from_raw_parts_mut(obs.add(4 * i), 4)) };
    }
}

extern "C" fn step(settings: *const Settings, states: *mut State, logs: *mut Log, io: *const Io, from: usize, to: usize) {
    let (settings, io) = unsafe { (&*settings, &*io) };
    for i in from..to {
        let (state, log) = unsafe { (&mut *states.add(i), &mut *logs.add(i)) };
        let right = unsafe { *io.actions.add(i) } as i64 == state.lit;
        state.right += right as i64;
        state.done += 1;
        let ended = state.done == settings.presses;
        unsafe {
            *io.rewards.add(i) = right as i64 as f32;
            *io.terms.add(i) = ended as u8;
            *io.truncs.add(i) = 0;
        }
        if ended {
            if !(log.limit > 0.0 && log.episodes >= log.limit) {
                log.episodes += 1.0;
                log.score += state.right as f64;
                log.perf += state.right as f64 / settings.presses as f64;
                log.ep_return += state.right as f64;
                log.ep_length += state.done as f64;
            }
            state.done = 0;
            state.right = 0;
        }
        light(state);
        unsafe { look(state, std::slice::from_raw_parts_mut(io.obs.add(4 * i), 4)) };
    }
}

const fn text(bytes: &'static [u8]) -> *const c_char { bytes.as_ptr() as *const c_char }
const NONE: *const c_void = std::ptr::null();

static OPTIONS: [OptDef; 1] = [OptDef {
    key: text(b"presses\0"), written: std::ptr::null(), kind: 1 /* OPT_INT */, offset: 0, def: text(b"20\0"), min: 1.0, max: 1000.0,
    scale: 0 /* OPT_FIXED */, sweep_min: 0.0, sweep_max: 0.0, sweep_factor: 0.0, choices: std::ptr::null(),
    also: std::ptr::null(), unit: text(b"presses\0"), help: text(b"Ends an episode after this many presses.\0"),
    depends: std::ptr::null(),
}];
static ABOUT: About = About { summary: text(b"press the button of the lamp that is lit\0"), defaults: NONE, n_defaults: 0 };
static DEF: Def = Def {
    api_version: 9, def_bytes: std::mem::size_of::<Def>() as u32, name: text(b"lamp\0"), about: &ABOUT,
    options: OptTable {
        section: text(b"env\0"), title: text(b"Environment: lamp\0"), defs: OPTIONS.as_ptr(), n_defs: 1,
        settings_size: std::mem::size_of::<Settings>(),
    },
    shape, reset_range: reset, observe_range: observe, step_range: step,
    state_size: std::mem::size_of::<State>(), track_at: 0, draw: NONE, open: NONE, close: NONE, saved_bytes: NONE,
    save: NONE, load: NONE, failed: NONE, outside_s: NONE, number_names: NONE, n_numbers: 0, take_numbers: NONE, begin_range: NONE,
    source: NONE,
};

#[no_mangle]
pub extern "C" fn trawl_env() -> *const Def { &DEF }
