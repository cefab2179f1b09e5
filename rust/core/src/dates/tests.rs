use super::*;
use chrono::{Datelike, NaiveDate};
use proptest::prelude::*;
use serde_json::Value;
use std::process::Command;

const FACTS: &str = include_str!("../../../../tests/data/js_dates.json");

/// V8's recorded answers in one zone: value and time.
fn facts(zone: &str) -> Vec<(Value, Option<i64>)> {
    let facts: Value = serde_json::from_str(FACTS).unwrap();
    let zones = facts["zones"].as_array().unwrap();
    let column = zones.iter().position(|name| name == zone).unwrap();
    let rows = facts["rows"].as_array().unwrap().iter();
    rows.map(|row| (row[0].clone(), row[column + 1].as_f64().map(|ms| ms as i64)))
        .collect()
}

fn differences(zone: &str) -> Vec<String> {
    let mut different = Vec::new();
    for (value, wanted) in facts(zone) {
        let got = of_json(value.to_string().as_bytes());
        // What JavaScript makes of lists is left to those who have a use for it.
        if !value.is_array() && got != wanted {
            different.push(format!("{value}: {got:?}, V8 says {wanted:?}"));
        }
    }
    different
}

/// Run by the test below, in a process of its own that has the zone.
#[test]
fn in_the_zone_of_the_process() {
    let zone = std::env::var("TZ").unwrap_or_default();
    if FACTS.contains(&format!("\"{zone}\"")) && !zone.is_empty() {
        assert_eq!(differences(&zone), Vec::<String>::new());
    }
}

#[test]
fn dates_are_those_that_v8_gave_in_every_recorded_zone() {
    let facts: Value = serde_json::from_str(FACTS).unwrap();
    for zone in facts["zones"].as_array().unwrap() {
        let done = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "dates::tests::in_the_zone_of_the_process"])
            .env("TZ", zone.as_str().unwrap())
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{zone}: {}",
            String::from_utf8_lossy(&done.stdout)
        );
        assert!(String::from_utf8_lossy(&done.stdout).contains("1 passed"));
    }
}

#[test]
fn only_the_written_form_is_read_as_such() {
    for text in [
        "",
        "2026-01-01",
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:00.000z",
        "2026-01-01 00:00:00.000Z",
        "2026-13-01T00:00:00.000Z",
        "2026-00-01T00:00:00.000Z",
        "2026-01-32T00:00:00.000Z",
        "2026-01-00T00:00:00.000Z",
        "2026-01-01T24:00:00.000Z",
        "2026-01-01T00:60:00.000Z",
        "2026-01-01T00:00:60.000Z",
        "2026-01-01T00:00:00.0:0Z",
        "2026-01-01T00:00:00.0/0Z",
        "202\u{e9}-01-01T00:00:00.00Z",
    ] {
        assert_eq!(written(text.as_bytes()), None, "{text}");
    }
}

proptest! {
    #[test]
    fn the_written_form_is_read_as_the_calendar_counts(day in -700_000i64..2_900_000, ms in 0..DAY) {
        let date = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap() + chrono::TimeDelta::days(day);
        prop_assume!((0..10_000).contains(&date.year()));
        let clock = chrono::NaiveTime::MIN + chrono::TimeDelta::milliseconds(ms);
        let text = format!("{}T{}Z", date.format("%Y-%m-%d"), clock.format("%H:%M:%S%.3f"));
        prop_assert_eq!(parse(text.as_bytes()), Some(day * DAY + ms));
        // The slower ways agree.
        prop_assert_eq!(standard(text.as_bytes()), Some(day * DAY + ms));
        prop_assert_eq!(of_json(format!("\"{text}\"").as_bytes()), Some(day * DAY + ms));
        prop_assert_eq!(of_json(format!("\"{}\"", text.replace('T', "\\u0054")).as_bytes()), Some(day * DAY + ms));
    }

    #[test]
    fn no_text_panics_and_every_time_is_in_range(text in proptest::collection::vec(
        prop_oneof![proptest::sample::select(&b"0123456789+-:.TZ ()aJanpm\xc3\xa9\0"[..]), any::<u8>()], 0..40)) {
        if let Some(ms) = parse(&text) {
            prop_assert!(ms.abs() <= LIMIT);
        }
    }
}

#[test]
fn every_day_is_written_as_it_is_read() {
    let (first, last) = (midnight((0, 1, 1)), midnight((10_000, 1, 1)));
    for day in (first..last).step_by(DAY as usize) {
        let ms = day + (day / DAY).rem_euclid(DAY) * 7919 % DAY;
        assert_eq!(written(&to_written(ms).unwrap()), Some(ms));
    }
    assert_eq!(written(&to_written(last - 1).unwrap()), Some(last - 1));
    for ms in [first - 1, last, i64::MIN, i64::MAX] {
        assert_eq!(to_written(ms), None);
    }
}
