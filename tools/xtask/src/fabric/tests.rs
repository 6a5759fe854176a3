use clap::Parser;
use ferroce_sim::fabric::US;

use super::*;
use crate::Usage;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

fn parse(text: &str) -> Args {
    Line::parse_from(["fabric"].into_iter().chain(text.split_whitespace())).args
}

#[test]
fn what_does_not_go_together_is_a_mistake_in_one_line() {
    for (text, part) in [
        ("incast --hosts 1024", "1 to 1023"),
        ("permutation --hosts 1", "2 to 1023"),
        ("incast --hosts 0", "1 to 1023"),
        ("incast --bytes 0", "--bytes"),
        ("s2 --hosts 4", "--hosts"),
        ("s2 --rate 25", "--rate"),
        ("s4 --dut model", "without end"),
        ("incast --dut rtl512 --cc paper", "--cc"),
        ("incast --dut model --cc swift --read", "--read"),
        ("all-to-all --hosts 17 --dut model", "272 flows"),
        ("hadoop --bytes 5", "--bytes"),
        ("hadoop --time 19", "20 us"),
        ("incast --read", "--dut"),
        ("incast --load 20", "--load"),
        ("incast --cc swift --cnp 9", "--cnp"),
        ("s4 --cnp 9", "--cnp"),
        ("victim --spray", "--spray"),
        ("s4 --beside run.csv", "--svg"),
        ("ring --hosts 4 --read --dut model", "--read"),
        ("victim --hosts 1023 --topology fat-tree", "do not fit"),
    ] {
        let error = plan::plan(&parse(text)).err().expect(text);
        let line = error.to_string();
        assert!(
            error.is::<Usage>() && line.contains(part) && !line.contains('\n'),
            "{line}"
        );
    }
}

fn figures_of(text: &str) -> (impl Fn(&str) -> Option<f64>, Vec<String>) {
    let plan = plan::plan(&parse(text)).unwrap();
    let results = plan.setup.run_paced(&plan.flows, &plan.config);
    let (figures, wrong) = figures::figures(&plan, &results);
    let value = move |name: &str| {
        let figure = figures.iter().find(|figure| figure.name == name)?;
        Some(figure.value.as_f64())
    };
    (value, wrong)
}

#[test]
fn figures_are_of_flows_while_they_go_on() {
    // the second flow comes when the run ends
    let (alone, _) = figures_of("s2 --time 10000");
    assert_eq!(alone("fairness_jain"), Some(1.0));
    // the senders have the line until the switch stops them
    let (start, _) = figures_of("s4 --time 200 --pfc");
    assert!(start("bottleneck_utilisation").unwrap() <= 100.0);
    // the victim alone arrives
    let (late, wrong) = figures_of("victim --hosts 7 --time 1000");
    assert!(late("goodput").unwrap() <= 200.0 && late("fairness_jain").is_none());
    assert!(wrong[0].contains("7 of 8 flows") && wrong[0].contains("--time"));
    // a flow has a packet and an ACK, and each two wires
    let (lossy, _) = figures_of("all-to-all --hosts 16 --bytes 500 --loss 10%");
    assert!((15.0..23.0).contains(&lossy("loss").unwrap()));
    // goodput and queues of a mix are of the time in which flows come
    let mix = plan::plan(&parse("hadoop --time 1000 --cc dcqcn")).unwrap();
    assert_eq!(mix.window, (240 * US, 1000 * US));
    // other scenarios may end before their queues count
    assert!(plan::plan(&parse("incast --cc dcqcn --time 1000")).is_ok());
}

#[test]
fn a_run_has_its_figures_and_a_page() {
    let args = parse("incast --hosts 4 --bytes 200000 --cc dcqcn --pfc --threads 1");
    let plan = plan::plan(&args).unwrap();
    let results = plan.setup.run_paced(&plan.flows, &plan.config);
    let (figures, wrong) = figures::figures(&plan, &results);
    assert_eq!(wrong, [""; 0]);
    let of = |name: &str| {
        let found = figures.iter().find(|figure| figure.name == name);
        found.expect(name).value.as_f64()
    };
    // 782 frames of 1106 bytes into one port
    assert!((69.0..77.0).contains(&of("last_received")), "{figures:?}");
    assert!(of("slowdown_p50") > 1.0 && of("dropped") == 0.0);
    assert!(of("queue_peak") > 400.0);
    let queue = plot::queue(&plan, &results, None);
    let page = plot::page(&plan, &results, queue, &Report::new(true, 1, figures)).unwrap();
    assert_eq!(page.matches("<svg").count(), 3);
}

#[test]
fn a_recorded_run_is_drawn_beside() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.csv");
    std::fs::write(&file, "t_us,marks,q0_mean_B\n20,1,5000\n40,2,7000\n\n").unwrap();
    let line = plot::recorded(&file).unwrap();
    assert_eq!(line.points, [(0.02, 5.0), (0.04, 7.0)]);
    for text in [
        "t_us,marks\n20,1\n",
        "t_us,q0_mean_B\n20,x\n",
        "t_us,q0_mean_B\n20,inf\n",
        "",
    ] {
        std::fs::write(&file, text).unwrap();
        let error = plot::recorded(&file).err().expect(text);
        assert!(
            error.is::<Usage>() && error.to_string().contains("run.csv"),
            "{error}"
        );
    }
}

#[test]
fn a_run_that_ends_before_the_means_begin_has_a_peak_alone() {
    let run = |cc: &str| {
        let text = "incast --hosts 4 --bytes 200000 --topology fat-tree --threads 1";
        let plan = plan::plan(&parse(&format!("{text} --cc {cc}"))).unwrap();
        let results = plan.setup.run_paced(&plan.flows, &plan.config);
        let (figures, wrong) = figures::figures(&plan, &results);
        assert_eq!(wrong, [""; 0]);
        let left_out = figures::left_out(&plan, &results);
        let of = |name: &str| {
            let found = figures.iter().find(|figure| figure.name == name);
            found.map(|figure| figure.value.as_f64())
        };
        let names = ["bottleneck_switch", "bottleneck_port", "queue_peak"];
        (names.map(of), ["queue_mean", "queue_p99"].map(of), left_out)
    };
    let (place, means, left_out) = run("none");
    assert!(means[0] > Some(100.0) && means[1] > means[0], "{means:?}");
    assert_eq!(left_out, None);
    let (short, means, left_out) = run("dcqcn");
    assert_eq!(means, [None; 2]);
    assert!(left_out.unwrap().contains("from 2000 us on"));
    assert_eq!(short[..2], place[..2], "the port with the queue");
    assert!(short[2] > Some(100.0), "{short:?}");
}
