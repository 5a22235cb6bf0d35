//! Public faults of bots of this kind, by the number of their entry, and where each is kept as a test: the case that was
//! reported, and one more of its kind. It holds no story itself; it only sees to it that every test that it names is there.
//!
//! | Entry | What went wrong there | The case | One more of its kind |
//! |---|---|---|---|
//! | 1 | text after the command | `what_is_a_command` | `bodies_of_any_shape_are_answered_well` |
//! | 2 | quotes in addresses | `arguments_reach_the_tool_exactly_and_are_applied_as_planned` | `what_cannot_be_obeyed_is_answered` |
//! | 3 | a flag widens the scope | `nothing_selects_more_than_it_names` | `what_cannot_be_obeyed_is_answered` |
//! | 4 | quoted commands | `what_is_prose` | `what_is_rendered_is_read_back` |
//! | 5 | events that are no new comment | `only_a_new_comment_on_a_pull_is_a_command` | `a_comment_that_was_edited_before_it_was_found_runs_nothing` |
//! | 6 | reads its own words | `a_program_commands_when_it_is_named_and_never_approves` | `a_review_by_a_program_commands_nothing` |
//! | 8 | path prefixes | `the_deepest_root_owns_a_path_by_its_components` | `roots_with_odd_names_are_planned_named_and_applied` |
//! | 10 | root removed or renamed | `a_root_that_is_only_renamed_changes_nothing_and_another_meets_its_lock` | `a_backend_that_names_another_state_is_said_to_create_anew` |
//! | 13 | drafts | `a_draft_holds_no_lock_and_becomes_ready_without_a_second_plan` | `a_draft_that_becomes_ready_stands_in_line_behind_who_applied_meanwhile` |
//! | 14 | forks | `nothing_of_a_fork_runs_without_a_word_for_its_head` | `a_word_for_a_forks_head_does_not_count_for_a_push_that_overtook_it` |
//! | 15 | retargeted | `another_base_with_the_same_head_is_another_plan` | `a_pull_into_a_branch_that_is_not_named_is_left_alone` |
//! | 16 | a root left the pull | `a_root_that_left_the_pull_is_not_applied_and_not_held` | `a_head_that_changes_nothing_any_more_is_green_and_applies_nothing` |
//! | 17 | apply while it plans | `an_apply_while_the_head_is_planned_is_refused_and_the_check_waits` | `a_push_in_mid_apply_counts_for_the_old_head_only` |
//! | 18 | force-push in mid-plan | `three_pushes_at_once_end_with_one_note_of_the_last` | `a_base_that_was_forced_back_is_planned_on` |
//! | 22 | closed while work runs | `a_close_in_mid_apply_keeps_the_lock_until_it_ends_and_its_comment_ends_too` | `a_branch_that_is_deleted_lets_go_of_everything` |
//! | 24 | losing a lock | `who_waits_for_one_root_plans_the_others_and_the_check_says_so` | `an_apply_whose_lock_was_given_back_does_not_go_on` |
//! | 25 | events twice or out of order | `one_comment_delivered_ten_times_at_once_runs_once` | `what_was_delivered_comes_again_an_hour_later` |
//! | 26 | very large output | `hundreds_of_resources_and_an_endless_line_are_one_note_within_the_limit` | `a_comment_that_the_forge_refused_once_is_said_again_and_the_run_goes_on` |
//! | 27 | values that are markup | `text_of_a_plan_mentions_nobody_and_breaks_nothing` | `the_error_of_a_tool_is_text_as_well` |
//! | 28 | secrets that the tool shows | `no_place_of_a_root_shows_it` | `no_failing_apply_shows_it` |
//! | 29 | zero roots | `what_touches_no_root_is_green_on_every_head` | `a_head_that_changes_nothing_any_more_is_green_and_applies_nothing` |
//! | 30 | a part is applied and merged | `a_part_that_is_applied_is_counted_and_merges_nothing` | `nothing_merges_by_itself_that_applied_nothing_or_failed` |
//! | 36 | limits, errors, slow truth | `a_note_is_written_once_whatever_the_forge_answers` | `trouble_that_passes_leaves_no_trace` |
//! | 37 | tokens die | `tokens_that_die_are_made_again` | `a_short_lived_token_is_not_kept` |
//! | 43 | the server starts anew | `a_server_that_dies_at_any_moment_of_a_plan_ends_with_one_note` | `an_apply_goes_on_without_the_server_and_its_result_is_taken_up` |
//!
//! Not yet kept: 42 (disk full).

use std::path::Path;

#[test]
fn every_test_that_the_table_names_is_there() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut code = String::new();
    for folder in ["tests/it", "src/domain", "src/forge"] {
        gather(&home.join(folder), &mut code);
    }
    let rows = include_str!("buglog.rs").lines().filter(|line| line.starts_with("//! |"));
    let missing: Vec<&str> = rows
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .filter(|name| !code.contains(&format!("fn {name}(")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn gather(folder: &Path, into: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            gather(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.push_str(&std::fs::read_to_string(&path).expect("a file"));
        }
    }
}
