"""Access as people meet it: an owner's token, tokens for others, a signing console, and the record of all of it."""

from __future__ import annotations

SPECIFICATION = b'{"run": {"work_s": 1}, "resources": {"cpu": 1}}'


def test_from_the_owners_token_to_a_revoked_one(new_dev, command, tmp_path):
    """Proves the whole course on a running server: nobody in without a token, roles, signatures, revocation, record."""
    owner, key = tmp_path / "owner.token", tmp_path / "console.key"
    owner.write_text("o" * 64 + "\n")
    public = command("signers", "new-key", str(key)).out.strip()
    dev = new_dev("--no-load")
    dev.environment = {
        "EVENFLOW_CONSOLE_OWNER_TOKEN_FILE": str(owner),
        "EVENFLOW_CONSOLE_SIGNING_KEY_FILE": str(key),
        "EVENFLOW_PLACEMENT_UNSIGNED_SUBMISSIONS": "none",
    }
    dev.start()
    as_owner = {"EVENFLOW_TOKEN_FILE": str(owner)}

    stranger = dev.run("list")
    assert (stranger.code, "EVENFLOW_TOKEN_FILE" in stranger.err) == (2, True)
    assert dev.run("list", **as_owner).code == 0

    distrusted = dev.run("submit", "-", "--wait", "20", given=SPECIFICATION, **as_owner)
    assert (distrusted.code, "evenflow signers add" in distrusted.err) == (2, True), distrusted.err
    assert dev.run("signers", "add", "console", "--key", public, "--tenant", "*", **as_owner).code == 0

    issued = dev.run("tokens", "issue", "--name", "ci", "--role", "submitter", "--expires", "1h", **as_owner)
    assert issued.code == 0, issued.err
    as_ci = {"EVENFLOW_TOKEN": issued.out.strip()}
    done = dev.run("submit", "-", "--wait", "20", "--reason", "nightly", "--json", given=SPECIFICATION, **as_ci)
    assert done.code == 0, done.err
    assert done.json["status"]["decided"]
    refused = dev.run("nodes", "drain", "east-1", "--reason", "mine", **as_ci)
    assert (refused.code, "needs the role operator" in refused.err) == (2, True)

    assert dev.run("tokens", "revoke", "ci", **as_owner).code == 0
    gone = dev.run("list", **as_ci)
    assert (gone.code, "was revoked" in gone.err) == (2, True)
    rows = dev.run("changes", "--actor", "ci", "--json", **as_owner).json["items"]
    said = [(row["action"], row["role"], row["outcome"], row["reason"], row["address"]) for row in reversed(rows)]
    assert said == [
        ("task.submit", "submitter", "requested", "nightly", "127.0.0.1"),
        ("node.drain", "submitter", "refused: role-needed", "", "127.0.0.1"),
    ]
