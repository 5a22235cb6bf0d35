#!/bin/sh
# A session with `gh api` and `gh pr` against the sandbox forge: what its users do, and what GitHub answers. Ends at the first difference.
# Usage: session.sh SANDBOX_JSON. Over HTTPS gh speaks to an enterprise host; over HTTP through a proxy, with whole addresses as targets.
set -eu
facts=$1
say() { python3 -c 'import json,sys; v=json.load(open(sys.argv[1]))
for k in sys.argv[2].split("."): v=v[k]
print(v)' "$facts" "$1"; }
same() { [ "$1" = "$2" ] || { echo "gh: expected '$2', got '$1'" >&2; exit 1; }; }

url=$(say url)
token=$(say tokens.mira)
GH_CONFIG_DIR=$(mktemp -d)
trap 'rm -rf "$GH_CONFIG_DIR"' EXIT
export GH_CONFIG_DIR GH_PROMPT_DISABLED=1 GH_NO_UPDATE_NOTIFIER=1
case $url in
https:*) export GH_HOST="${url#https://}" GH_ENTERPRISE_TOKEN="$token" SSL_CERT_FILE="$(say certificate)" NO_PROXY=localhost ;;
*) export GH_HOST=github.localhost GH_TOKEN="$token" http_proxy="$url" no_proxy= NO_PROXY= ;;
esac

repo=repos/acme/infra
branch=gh/branch
same "$(gh api user --jq .login)" mira
same "$(gh api $repo --jq .default_branch)" main
main=$(gh api $repo/git/ref/heads/main --jq .object.sha)
file=$(gh api "$repo/contents/network/main.tf?ref=main" --jq .sha)
gh api $repo/git/refs -f ref=refs/heads/$branch -f sha="$main" --silent
gh api -X PUT $repo/contents/network/main.tf -f message="Say it" -f content="IyBzYWlkCg==" -f sha="$file" -f branch=$branch --silent
number=$(gh api $repo/pulls -f base=main -f head=$branch -f title="Say it" --jq .number)
if refusal=$(gh api $repo/pulls -f base=main -f head=$branch -f title="Say it" 2>&1); then
  echo "gh: a second pull was not refused" >&2
  exit 1
fi
case $refusal in *"already exists"*) ;; *) echo "gh: refused with '$refusal'" >&2; exit 1 ;; esac

count=0
while [ $count -lt 35 ]; do
  gh api $repo/issues/"$number"/comments -f body="c$count" --silent
  count=$((count + 1))
done
same "$(gh api --paginate "$repo/issues/$number/comments?per_page=10" --jq '.[].body' | wc -l | tr -d ' ')" 35
comment=$(gh api $repo/issues/"$number"/comments --jq '.[0].id')
same "$(gh api -X PATCH $repo/issues/comments/"$comment" -f body=edited --jq .body)" edited
same "$(gh api $repo/issues/comments/"$comment"/reactions -f content=eyes --jq .content)" eyes
head=$(gh api $repo/pulls/"$number" --jq .head.sha)
gh api $repo/statuses/"$head" -f state=success -f context=ci/gh --silent
same "$(gh api $repo/commits/"$head"/status --jq .state)" success
same "$(gh api $repo/pulls/"$number"/files --jq '.[].filename')" network/main.tf
gh api $repo/pulls/"$number" -H 'Accept: application/vnd.github.v3.diff' | grep -q '^diff --git'
same "$(gh api -X PUT $repo/pulls/"$number"/merge --jq .merged)" true
same "$(gh api $repo/pulls/"$number" --jq .state)" closed

# The commands that people type: GraphQL. One of them reviews as another person.
R="--repo ${GH_HOST}/acme/infra"
as_lin() { GH_TOKEN=$(say tokens.lin) GH_ENTERPRISE_TOKEN=$(say tokens.lin) "$@"; }
main=$(gh api $repo/git/ref/heads/main --jq .object.sha)
file=$(gh api "$repo/contents/network/main.tf?ref=main" --jq .sha)
gh api $repo/git/refs -f ref=refs/heads/gh/typed -f sha="$main" --silent
gh api -X PUT $repo/contents/network/main.tf -f message="Type it" -f content="IyB0eXBlZAo=" -f sha="$file" -f branch=gh/typed --silent
page=$(gh pr create $R --head gh/typed --base main --title "Type it" --body "words" --draft)
number=${page##*/}
same "$(gh pr list $R --json number,title,isDraft --jq '.[] | "\(.number) \(.title) \(.isDraft)"')" "$number Type it true"
gh pr view "$number" $R | grep -q 'Type it'
gh pr ready "$number" $R 2>/dev/null
gh pr edit "$number" $R --title "Typed" >/dev/null
gh pr comment "$number" $R --body "a comment" >/dev/null
as_lin gh pr review "$number" $R --approve
head=$(gh pr view "$number" $R --json headRefOid --jq .headRefOid)
gh api $repo/statuses/"$head" -f state=success -f context=ci/gh --silent
gh pr checks "$number" $R | grep -q 'ci/gh'
same "$(gh pr view "$number" $R --json title,state,comments,latestReviews,files,statusCheckRollup \
  --jq '"\(.title) \(.state) \(.comments[0].body) \(.latestReviews[0].state) \(.files[0].path) \(.statusCheckRollup[0].state)"')" \
  "Typed OPEN a comment APPROVED network/main.tf SUCCESS"
gh pr diff "$number" $R | grep -q '^diff --git'
gh pr merge "$number" $R --squash >/dev/null 2>&1
same "$(gh pr view "$number" $R --json state --jq .state)" MERGED
if refusal=$(gh pr view 999 $R 2>&1); then
  echo "gh: a pull that is not there was shown" >&2
  exit 1
fi
case $refusal in *"Could not resolve to a PullRequest with the number of 999"*) ;; *) echo "gh: refused with '$refusal'" >&2; exit 1 ;; esac
echo "gh at $url: as on GitHub"
