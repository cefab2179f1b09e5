//! Scans in blocks against a plain split.

use super::twins::{naive, scanned};
use super::*;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        3 => r#"\{"type":"message","id":"abcdef[0-3]{2}","parentId":(null|"abcdef[0-3]{2}"),"message":\{"role":"(user|x)"\}\}"#,
        1 => r#"\{"type":"(session|label|x)","id":("[ab]{0,2}"|1|null|\{\}),"parentId":("[ab]{0,2}"|1|0),"a":\[0, 1\]\}"#,
        1 => "[ \t\r]{0,3}",
        1 => "(null|0|true|\"\"|\\{|x|\\[\\]|\"a)",
    ];
    proptest::collection::vec((line, any::<bool>()), 0..30).prop_map(|lines| {
        let last = lines.len().saturating_sub(1);
        let lines = lines.into_iter().enumerate();
        let end = |at, lf| if at < last || lf { "\n" } else { "" };
        lines
            .map(|(at, (line, lf))| line + end(at, lf))
            .collect::<String>()
            .into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Blocks of any size and any number of threads give what a plain split gives.
    #[test]
    fn any_cut_gives_the_lines_of_a_plain_split(
        text in text(),
        block in prop_oneof![1_usize..20, 20_usize..2000],
        threads in 0_usize..4,
        skip in 0_usize..3,
    ) {
        let starts: Vec<_> = memchr::memchr_iter(b'\n', &text).take(skip).collect();
        let range = starts.last().map_or(0, |&lf| lf as u64 + 1)..text.len() as u64;
        let found = scanned(&text, range.clone(), Plan { block, threads });
        prop_assert_eq!(found, naive(&text, range));
    }

    /// Where the source ends before it should, everything before that is found.
    #[test]
    fn a_source_that_shrinks_ends_there(text in text(), block in 1_usize..300, more in 1_u64..99) {
        let range = 0..text.len() as u64 + more;
        let found = scanned(&text, range.clone(), Plan { block, threads: 2 });
        prop_assert_eq!(found, naive(&text, range));
    }
}

/// A line much longer than a block is found, whatever stands around it.
#[test]
fn a_long_line_is_one_line() {
    let long = format!("{{\"a\":\"{}\"}}\n", "x".repeat(1 << 20));
    for text in [
        long.clone(),
        format!("{{}}\n{long}{{}}\n"),
        long.repeat(2) + "{",
    ] {
        let range = 0..text.len() as u64;
        for block in [1000, 70_000, 1 << 19, 1 << 21] {
            let plan = Plan { block, threads: 2 };
            let found = scanned(text.as_bytes(), range.clone(), plan);
            assert_eq!(found, naive(text.as_bytes(), range.clone()), "{block}");
        }
    }
}

/// A long line that is at fault from its beginning on is skipped where any other would be.
#[test]
fn a_long_hopeless_line_is_skipped() {
    let zeros = "\0".repeat(1 << 20) + "\n";
    let late = format!("[\"{}\",]\n", "x".repeat(1 << 20));
    for text in [
        zeros.clone(),
        format!("{{}}\n{zeros}{{}}\n"),
        format!("{{}}\n{late}{zeros}{zeros}{{"),
        format!("{{}}\n{{{}", zeros.trim_end()),
    ] {
        let range = 0..text.len() as u64;
        for block in [1000, 70_000, 1 << 19, 1 << 22] {
            let plan = Plan { block, threads: 2 };
            let found = scanned(text.as_bytes(), range.clone(), plan);
            assert_eq!(found, naive(text.as_bytes(), range.clone()), "{block}");
        }
    }
}

/// A scan ends when the caller says so.
#[test]
fn a_scan_can_be_ended() {
    struct Slow;
    impl Source for Slow {
        fn read_at(&self, buf: &mut [u8], _: u64) -> io::Result<usize> {
            std::thread::sleep(Duration::from_millis(20));
            buf.fill(b'\n');
            Ok(buf.len())
        }
        fn size(&self) -> io::Result<u64> {
            Ok(u64::MAX)
        }
    }
    let began = Instant::now();
    let plan = Plan {
        block: 1 << 10,
        threads: 2,
    };
    let mut asked = 0;
    let mut go_on = || {
        asked += 1;
        asked < 3
    };
    let result = scan(&Slow, 0..1 << 40, plan, &mut |_| (), &mut go_on);
    assert!(matches!(result, Ok(ControlFlow::Break(()))));
    assert!(began.elapsed() < Duration::from_secs(5));
}

/// An error of the source ends the scan and is told.
#[test]
fn an_error_is_told() {
    struct Broken;
    impl Source for Broken {
        fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
            if offset > 3000 {
                return Err(io::Error::other("broken"));
            }
            buf.fill(b'\n');
            Ok(buf.len())
        }
        fn size(&self) -> io::Result<u64> {
            Ok(1 << 20)
        }
    }
    for size in [6000, 1 << 20] {
        let plan = Plan {
            block: 4000,
            threads: 2,
        };
        let result = scan(&Broken, 0..size, plan, &mut |_| (), &mut || true);
        assert!(result.is_err(), "{size}");
    }
}
