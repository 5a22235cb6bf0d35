"""A session with PyGithub against the sandbox forge: what its users do, and what GitHub answers. Exits non-zero at the first difference.

Usage: session.py SANDBOX_JSON [PREFIX]
"""

import json
import sys

import github
from github import Auth, Github, GithubIntegration

facts = json.load(open(sys.argv[1]))
base = facts["url"] + (sys.argv[2] if len(sys.argv) > 2 else "")
branch = "py" + base.rsplit("/", 1)[-1].replace(":", "-")
quick = {"retry": None, "seconds_between_requests": 0, "seconds_between_writes": 0}


def sign_in(login):
    return Github(base_url=base, auth=Auth.Token(facts["tokens"][login]), **quick)


def refused(status, call):
    try:
        call()
    except github.GithubException as error:
        assert error.status == status, (error.status, error.data)
        return error.data
    raise AssertionError(f"not refused with {status}")


mira, lin = sign_in("mira"), sign_in("lin")
assert mira.get_user().login == "mira"
repo = mira.get_repo(facts["repository"])
assert repo.full_name == facts["repository"] and repo.default_branch == "main"
assert repo.permissions.push and not repo.permissions.admin
assert refused(404, lambda: mira.get_repo("acme/none"))["message"] == "Not Found"

main = repo.get_branch("main")
file = repo.get_contents("network/main.tf", ref="main")
assert b"terraform" in file.decoded_content
repo.create_git_ref(f"refs/heads/{branch}", main.commit.sha)
repo.update_file("network/main.tf", "Say it", file.decoded_content.decode() + "\n# said\n", file.sha, branch=branch)

pull = repo.create_pull(base="main", head=branch, title="Say it", body="as said")
again = refused(422, lambda: repo.create_pull(base="main", head=branch, title="Say it", body=""))
assert "already exists" in json.dumps(again), again
assert pull.number in [found.number for found in repo.get_pulls(state="open")]
assert [changed.filename for changed in pull.get_files()] == ["network/main.tf"]
assert pull.get_commits().totalCount == 1
assert pull.user.login == "mira" and pull.head.ref == branch and not pull.draft

comment = pull.create_issue_comment("hello")
comment.edit("hello again")
assert [found.body for found in pull.get_issue_comments()] == ["hello again"]
reaction = comment.create_reaction("eyes")
assert comment.create_reaction("eyes").id == reaction.id
comment.delete()
assert pull.get_issue_comments().totalCount == 0
for number in range(35):
    pull.create_issue_comment(f"c{number}")
assert [found.body for found in pull.get_issue_comments()] == [f"c{number}" for number in range(35)]
assert pull.get_issue_comments().totalCount == 35

commit = repo.get_commit(pull.head.sha)
commit.create_status("success", description="fine", context="ci/py")
assert commit.get_combined_status().state == "success"
assert [status.context for status in commit.get_statuses()] == ["ci/py"]

own = refused(422, lambda: pull.create_review(body="", event="APPROVE"))
assert "own pull request" in json.dumps(own), own
theirs = lin.get_repo(facts["repository"]).get_pull(pull.number)
theirs.create_review(body="good", event="APPROVE")
assert [(review.user.login, review.state) for review in pull.get_reviews()] == [("lin", "APPROVED")]
assert lin.get_repo(facts["repository"]).get_collaborator_permission("sam") == "read"
pull.add_to_labels("infra")
assert [label.name for label in pull.get_labels()] == ["infra"]
compared = repo.compare("main", branch)
assert compared.ahead_by == 1 and compared.files[0].filename == "network/main.tf"

key = open(facts["app"]["private_key_file"]).read()
app = GithubIntegration(auth=Auth.AppAuth(facts["app"]["id"], key), base_url=base, **quick)
installation = app.get_repo_installation(*facts["repository"].split("/"))
assert installation.id == facts["app"]["installation_id"]
token = app.get_access_token(installation.id)
bot = Github(base_url=base, auth=Auth.Token(token.token), **quick).get_repo(facts["repository"])
run = bot.create_check_run(name="py/check", head_sha=pull.head.sha, status="in_progress")
run.edit(status="completed", conclusion="success", output={"title": "fine", "summary": "all fine"})
assert [(found.name, found.conclusion) for found in bot.get_commit(pull.head.sha).get_check_runs()] == [("py/check", "success")]
said = bot.get_pull(pull.number).create_issue_comment("from the App")
assert said.user.type == "Bot", said.user.type

pull = repo.get_pull(pull.number)
assert pull.mergeable is True and pull.mergeable_state in ("clean", "unstable"), pull.mergeable_state
assert not pull.is_merged()
merged = lin.get_repo(facts["repository"]).get_pull(pull.number).merge()
assert merged.merged
pull.update()
assert pull.merged and pull.state == "closed" and pull.merge_commit_sha == merged.sha
print(f"PyGithub at {base}: as on GitHub")
