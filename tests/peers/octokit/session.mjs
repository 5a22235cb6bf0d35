// A session with octokit against the sandbox forge: what its users do, and what GitHub answers. Exits non-zero at the first difference.
// Usage: node session.mjs SANDBOX_JSON [PREFIX]

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createAppAuth } from "@octokit/auth-app";
import { Octokit } from "@octokit/rest";

const facts = JSON.parse(readFileSync(process.argv[2], "utf8"));
const baseUrl = facts.url + (process.argv[3] ?? "");
const branch = `js/${process.argv[3] ? "v3" : "root"}`;
const [owner, repo] = facts.repository.split("/");
const at = { owner, repo };
const silent = { debug() {}, info() {}, warn() {}, error() {} };
const signIn = (login) => new Octokit({ baseUrl, auth: facts.tokens[login], log: silent });
const refused = async (status, call) => {
  const error = await call().then(
    () => assert.fail(`not refused with ${status}`),
    (error) => error,
  );
  assert.equal(error.status, status, error.message);
  return error.message;
};

const mira = signIn("mira").rest;
const lin = signIn("lin").rest;
assert.equal((await mira.users.getAuthenticated()).data.login, "mira");
assert.equal((await mira.repos.get(at)).data.default_branch, "main");
assert.match(await refused(404, () => mira.repos.get({ owner, repo: "none" })), /Not Found/);
await refused(401, () => new Octokit({ baseUrl, auth: "ghp_wrong", log: silent }).rest.users.getAuthenticated());

const main = (await mira.git.getRef({ ...at, ref: "heads/main" })).data.object.sha;
const file = (await mira.repos.getContent({ ...at, path: "network/main.tf", ref: "main" })).data;
await mira.git.createRef({ ...at, ref: `refs/heads/${branch}`, sha: main });
await mira.repos.createOrUpdateFileContents({
  ...at,
  path: "network/main.tf",
  message: "Say it",
  content: Buffer.from(`${Buffer.from(file.content, "base64")}\n# said by octokit\n`).toString("base64"),
  sha: file.sha,
  branch,
});

const pull = (await mira.pulls.create({ ...at, base: "main", head: branch, title: "Say it" })).data;
const pull_number = pull.number;
const issue_number = pull.number;
assert.match(
  await refused(422, () => mira.pulls.create({ ...at, base: "main", head: branch, title: "Say it" })),
  /already exists/,
);
assert.deepEqual((await mira.pulls.listFiles({ ...at, pull_number })).data.map((file) => file.filename), ["network/main.tf"]);
const diff = await mira.pulls.get({ ...at, pull_number, mediaType: { format: "diff" } });
assert.match(diff.data, /^diff --git a\/network\/main.tf/);

for (let number = 0; number < 35; number += 1) {
  await mira.issues.createComment({ ...at, issue_number, body: `c${number}` });
}
const paginating = signIn("mira");
const comments = await paginating.paginate(paginating.rest.issues.listComments, { ...at, issue_number });
assert.deepEqual(comments.map((comment) => comment.body), Array.from({ length: 35 }, (_, number) => `c${number}`));
const comment_id = comments[0].id;
assert.equal((await mira.reactions.createForIssueComment({ ...at, comment_id, content: "eyes" })).status, 201);
assert.equal((await mira.reactions.createForIssueComment({ ...at, comment_id, content: "eyes" })).status, 200);
assert.equal((await mira.issues.updateComment({ ...at, comment_id, body: "edited" })).data.body, "edited");
assert.equal((await mira.issues.deleteComment({ ...at, comment_id })).status, 204);

const sha = pull.head.sha;
assert.equal((await mira.repos.createCommitStatus({ ...at, sha, state: "success", context: "ci/js" })).status, 201);
assert.equal((await mira.repos.listCommitStatusesForRef({ ...at, ref: sha })).data[0].context, "ci/js");
assert.equal((await mira.repos.getCombinedStatusForRef({ ...at, ref: branch })).data.state, "success");
await mira.issues.addLabels({ ...at, issue_number, labels: ["infra"] });
assert.equal((await lin.pulls.createReview({ ...at, pull_number, event: "APPROVE" })).status, 200);
assert.equal((await mira.pulls.listReviews({ ...at, pull_number })).data[0].state, "APPROVED");
assert.equal((await lin.repos.getCollaboratorPermissionLevel({ ...at, username: "sam" })).data.permission, "read");
assert.equal((await mira.repos.compareCommitsWithBasehead({ ...at, basehead: `main...${branch}` })).data.ahead_by, 1);

const app = new Octokit({
  baseUrl,
  log: silent,
  authStrategy: createAppAuth,
  auth: { appId: facts.app.id, privateKey: readFileSync(facts.app.private_key_file, "utf8"), installationId: facts.app.installation_id },
});
assert.equal((await app.rest.apps.getAuthenticated()).data.id, facts.app.id);
assert.equal((await app.rest.apps.listInstallations()).data.length, 1);
const repositories = await app.paginate(app.rest.apps.listReposAccessibleToInstallation);
assert.deepEqual(repositories.map((found) => found.full_name), [facts.repository]);
const run = (await app.rest.checks.create({ ...at, name: "js/check", head_sha: sha, status: "in_progress" })).data;
await app.rest.checks.update({ ...at, check_run_id: run.id, status: "completed", conclusion: "success" });
const runs = await app.paginate(app.rest.checks.listForRef, { ...at, ref: sha });
assert.deepEqual(runs.map((found) => [found.name, found.conclusion]), [["js/check", "success"]]);
assert.equal((await app.rest.issues.createComment({ ...at, issue_number, body: "from the App" })).data.user.type, "Bot");

await refused(404, () => mira.pulls.checkIfMerged({ ...at, pull_number }));
await refused(409, () => lin.pulls.merge({ ...at, pull_number, sha: main }));
assert.equal((await lin.pulls.merge({ ...at, pull_number, merge_method: "squash" })).data.merged, true);
assert.equal((await mira.pulls.checkIfMerged({ ...at, pull_number })).status, 204);
console.log(`octokit at ${baseUrl}: as on GitHub`);
