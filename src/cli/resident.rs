//! Gives back, once a host is up, what only its start needed of the program itself: its own pages of code.
//! Knows nothing of hosts.

/// Lets go of the pages of this program's code. Those that are needed again come back at their next use, from the file.
///
/// Reading the command line, checking schemas and compiling scripts touch most of the code that a host ever touches, and a host
/// then stays for weeks: what it holds should be what it uses. Where the system is not Linux, nothing happens.
pub(super) fn let_go_of_start() {
    #[cfg(target_os = "linux")]
    linux::let_go();
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::mm::{Advice, madvise};
    use std::ops::Range;

    pub(super) fn let_go() {
        let (Ok(maps), Ok(program)) =
            (std::fs::read_to_string("/proc/self/maps"), std::fs::read_link("/proc/self/exe"))
        else {
            return;
        };
        for pages in program.to_str().map(|program| code_of(&maps, program)).unwrap_or_default() {
            // SAFETY: the range is mapped from a file, private, executable and never written: what is let go of is read again
            // from the file when it is next used, the same bytes at the same place.
            let _ = unsafe { madvise(pages.start as *mut _, pages.len(), Advice::LinuxDontNeed) };
        }
    }

    /// Where the code of the program is mapped, in the lines of `/proc/self/maps`. Pages that were ever writable are left out:
    /// what a start wrote into them is in no file.
    pub(super) fn code_of(maps: &str, program: &str) -> Vec<Range<usize>> {
        let code = maps.lines().filter_map(|line| {
            let mut words = line.splitn(6, ' ');
            let (range, mode) = (words.next()?, words.next()?);
            let path = words.nth(3)?.trim_start();
            if mode != "r-xp" || path != program {
                return None;
            }
            let (start, end) = range.split_once('-')?;
            Some(usize::from_str_radix(start, 16).ok()?..usize::from_str_radix(end, 16).ok()?)
        });
        code.filter(|pages| pages.start < pages.end).collect()
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]
mod tests {
    use super::let_go_of_start;
    use super::linux::code_of;

    #[test]
    fn only_code_of_the_program_itself_is_let_go_of() {
        const MAPS: &str = "\
5580f2a00000-5580f3100000 r--p 00000000 fe:01 1234                       /usr/bin/lapidary
5580f3100000-5580f4500000 r-xp 00700000 fe:01 1234                       /usr/bin/lapidary
5580f4500000-5580f4620000 r--p 01b00000 fe:01 1234                       /usr/bin/lapidary
5580f4620000-5580f4630000 rw-p 01c20000 fe:01 1234                       /usr/bin/lapidary
5580f5000000-5580f6000000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000100000 r-xp 00000000 fe:01 99                         /usr/lib/libc.so.6
7f0000200000-7f0000300000 rwxp 00000000 fe:01 1234                       /usr/bin/lapidary
7f0000400000-7f0000500000 r-xp 00000000 00:00 0
nonsense";
        assert_eq!(code_of(MAPS, "/usr/bin/lapidary"), vec![0x5580_f310_0000..0x5580_f450_0000]);
        for (maps, program) in
            [("", "/a"), (MAPS, "/usr/bin/other"), ("zz-1 r-xp 0 0 0 /a", "/a"), ("2-1 r-xp 0 0 0 /a", "/a")]
        {
            assert!(code_of(maps, program).is_empty(), "{maps} {program}");
        }
        assert_eq!(
            code_of("1000-2000 r-xp 0 fe:01 1 /a b/c", "/a b/c"),
            vec![0x1000..0x2000],
            "a path may hold spaces"
        );
    }

    /// How much of this program's code is in memory now, in KiB.
    fn resident_code() -> u64 {
        let program = std::fs::read_link("/proc/self/exe").unwrap();
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let at = smaps.lines().skip_while(|l| !(l.contains(" r-xp ") && l.ends_with(program.to_str().unwrap())));
        let rss = at.take(20).find_map(|l| l.strip_prefix("Rss:")).unwrap();
        rss.trim().trim_end_matches(" kB").parse().unwrap()
    }

    #[test]
    fn what_a_start_touched_is_not_resident_afterwards_and_the_program_goes_on() {
        // Touches code in many places.
        let touched = url::Url::parse("http://a.example/b").unwrap();
        let before = resident_code();
        let_go_of_start();
        assert!(resident_code() < before);
        assert!(touched.host_str() == Some("a.example"));
    }
}
