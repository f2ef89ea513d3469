import { expect, test } from "vitest";
import { repositoryUrl } from "../src/state/draft";

test.each([
  ["acme/shop", "https://github.com/acme/shop"],
  ["github.com/acme/shop", "https://github.com/acme/shop"],
  ["https://example.org/acme/shop.git", "https://example.org/acme/shop.git"],
  ["git@example.org:acme/shop.git", "git@example.org:acme/shop.git"],
  ["/srv/shop", "/srv/shop"],
  ["~/shop", "~/shop"],
])("the repository %s", (text, url) => {
  expect(repositoryUrl(text)).toBe(url);
});
