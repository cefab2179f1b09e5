#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| sessiontree_core::fuzz::kept(data));
