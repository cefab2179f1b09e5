use super::*;
use std::fs::File;
use std::time::{Duration, SystemTime};

fn write(folder: &Path, name: &str, id: &str, seconds: u64) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("{{\"type\":\"session\",\"id\":\"{id}\"}}\n")).unwrap();
    set_time(&path, seconds);
    path
}

fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

fn options(order: Order, depth: Depth) -> Options {
    Options {
        order,
        depth,
        lenient: false,
        threads: 3,
    }
}

fn find(root: &Path, order: Order, depth: Depth) -> Files {
    Files::find(root, options(order, depth), &mut || true).unwrap()
}

fn ids(files: &mut Files, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let batch = files.summaries(count, u64::MAX, &mut || true).unwrap();
        if batch.is_empty() {
            return all;
        }
        assert!(batch.len() <= count);
        all.extend(batch.into_iter().map(|(_, shown)| match shown {
            Ok(shown) => String::from_utf8(shown.id).unwrap(),
            Err(_) => "-".to_owned(),
        }));
    }
}

#[test]
fn files_come_in_the_order_asked_for_whatever_the_batches() {
    let root = tempfile::tempdir().unwrap();
    for (name, time) in [("b", 5), ("a", 5), ("c", 9), ("d", 1)] {
        write(root.path(), &format!("{name}.jsonl"), name, time);
    }
    write(root.path(), "e.json", "e", 7);
    for (order, wanted) in [
        (Order::Name, "abcd"),
        (Order::Recent, "cabd"),
        (Order::Listed, "cbad"),
    ] {
        for count in 1..6 {
            let mut files = find(root.path(), order, Depth::Own);
            assert_eq!(ids(&mut files, count).concat(), wanted);
        }
    }
}

#[test]
fn folders_are_looked_into_one_level_deep() {
    let root = tempfile::tempdir().unwrap();
    let deep = root.path().join("x").join("y.jsonl");
    fs::create_dir_all(&deep).unwrap();
    write(root.path(), "own.jsonl", "own", 1);
    write(&root.path().join("x"), "below.jsonl", "below", 2);
    write(&deep, "deep.jsonl", "deep", 3);
    let shown = |depth| ids(&mut find(root.path(), Order::Name, depth), 9).join(" ");
    assert_eq!(shown(Depth::Own), "own");
    assert_eq!(shown(Depth::Below), "below -");
    assert_eq!(shown(Depth::Both), "below own -");
}

#[test]
fn batches_end_behind_the_size_asked_for() {
    let root = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        write(root.path(), &format!("{name}.jsonl"), name, 1);
    }
    let mut files = find(root.path(), Order::Recent, Depth::Own);
    let batch = files.summaries(9, 10, &mut || true).unwrap();
    assert_eq!(batch.len(), 1);
    assert_eq!(files.summaries(9, 1000, &mut || true).unwrap().len(), 2);
}

#[test]
#[cfg(unix)]
fn each_file_stands_alone() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let good = write(root.path(), "good.jsonl", "good", 5);
    fs::write(root.path().join("bad.jsonl"), "{}\n").unwrap();
    symlink("gone", root.path().join("dangling.jsonl")).unwrap();
    symlink(&good, root.path().join("link.jsonl")).unwrap();
    fs::create_dir(root.path().join("folder.jsonl")).unwrap();
    let mut files = find(root.path(), Order::Recent, Depth::Own);
    let troubles = files.troubles();
    assert_eq!(troubles.len(), 1);
    assert!(troubles[0].0.ends_with("dangling.jsonl"));
    let mut all = ids(&mut files, 2);
    all.sort();
    assert_eq!(all, ["-", "-", "good", "good"]);
    let mut by_name = find(root.path(), Order::Name, Depth::Own);
    assert!(by_name.troubles().is_empty());
    assert_eq!(ids(&mut by_name, 9), ["-", "-", "-", "good", "good"]);
    // Looking for headers, what is no session is passed over and what cannot be read is told.
    let mut headers = find(root.path(), Order::Name, Depth::Own);
    let (path, header) = headers.next_header(None, &mut || true).unwrap().unwrap();
    assert!(path.ends_with("good.jsonl") && header.id == b"good");
    assert_eq!(headers.troubles().len(), 2);
}

#[test]
#[cfg(unix)]
fn a_link_to_a_folder_is_a_folder_and_one_to_a_file_is_nothing() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let file = write(other.path(), "a.jsonl", "a", 1);
    symlink(other.path(), root.path().join("folder")).unwrap();
    symlink(&file, root.path().join("file")).unwrap();
    let mut files = find(root.path(), Order::Listed, Depth::Below);
    assert!(files.troubles().is_empty());
    assert_eq!(ids(&mut files, 9), ["a"]);
}

#[test]
#[cfg(unix)]
fn a_pipe_is_an_error_and_blocks_nobody() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("pipe.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    if made.is_ok_and(|status| status.success()) {
        for order in [Order::Name, Order::Recent] {
            assert_eq!(ids(&mut find(root.path(), order, Depth::Own), 9), ["-"]);
        }
    }
}

#[test]
fn a_name_that_tells_the_id_is_looked_at_first_but_the_header_decides() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "0_ab.jsonl", "other", 1);
    write(root.path(), "1.jsonl", "b", 1);
    write(root.path(), "2_b.jsonl", "b", 1);
    let mut files = find(root.path(), Order::Name, Depth::Own);
    files.prefer(b"b");
    let found = |files: &mut Files| {
        let found = files.next_header(Some(b"b"), &mut || true).unwrap();
        found.map(|(path, _)| path.file_name().unwrap().to_owned())
    };
    assert_eq!(found(&mut files).unwrap(), "2_b.jsonl");
    assert_eq!(found(&mut files).unwrap(), "1.jsonl");
    assert_eq!(found(&mut files), None);
    for (name, told) in [
        ("b.jsonl", true),
        ("x_b.jsonl", true),
        ("ab.jsonl", false),
        ("b", false),
    ] {
        assert_eq!(names_id(OsStr::new(name), b"b"), told, "{name}");
    }
}

#[test]
fn preferred_files_come_first_and_the_others_in_their_order() {
    let root = tempfile::tempdir().unwrap();
    for name in ["c", "x_b", "a", "b", "y_b", "d"] {
        write(root.path(), &format!("{name}.jsonl"), name, 1);
    }
    for (read, wanted) in [
        (0, "b x_b y_b a c d"),
        (1, "b x_b y_b c d"),
        (2, "x_b y_b c d"),
    ] {
        let mut files = find(root.path(), Order::Name, Depth::Own);
        files.summaries(read, u64::MAX, &mut || true).unwrap();
        files.prefer(b"b");
        assert_eq!(ids(&mut files, 9).join(" "), wanted);
    }
}

#[test]
fn a_folder_that_cannot_be_read_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    let missing = root.path().join("missing");
    for depth in [Depth::Own, Depth::Below] {
        let error = Files::find(&missing, options(Order::Name, depth), &mut || true).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Io { path, .. } if *path == missing));
    }
}

#[test]
fn giving_up_ends_everything() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..300 {
        write(root.path(), &format!("{number}.jsonl"), "a", 1);
    }
    let mut files = find(root.path(), Order::Name, Depth::Own);
    let mut no = || false;
    let cancelled = |error: &Error| matches!(error.kind(), ErrorKind::Cancelled);
    assert!(cancelled(&files.next_header(None, &mut no).unwrap_err()));
    assert_eq!(
        files.summaries(1000, u64::MAX, &mut || true).unwrap().len(),
        300
    );
}

#[test]
fn a_look_reads_nothing_and_leaves_out_what_is_gone() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..1200_u32 {
        write(root.path(), &format!("{number}.jsonl"), "a", 7);
    }
    fs::write(root.path().join("notes.txt"), "").unwrap();
    fs::create_dir(root.path().join("below")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("nothing", root.path().join("gone.jsonl")).unwrap();
    let look = looks::look_at(root.path(), &mut || true).unwrap();
    assert_eq!(look.files.len(), 1200);
    for (name, stat) in &look.files {
        let size = fs::metadata(root.path().join(name)).unwrap().len();
        assert_eq!((stat.size, stat.mtime), (size, 7_000_000_000));
        assert_eq!(stat.inode > 0, cfg!(unix));
    }
    assert_eq!(look.folders, [root.path().join("below")]);
    assert!(look.troubles.is_empty());
    let none = looks::look_at(&root.path().join("none"), &mut || true);
    assert!(matches!(none.unwrap_err().kind(), ErrorKind::Io { .. }));
}
