// A program with the generated types: it compiles only if the document describes a post and its answers.
import type { components, paths } from "./api";

type Submit = paths["/api/v1/posts"]["post"];
type Change = paths["/api/v1/channels/{id}"]["patch"]["requestBody"]["content"]["application/json"];

export const post: Submit["requestBody"]["content"]["application/json"] = {
  text: "Hello",
  media: [{ type: "image", url: "https://example.org/1.png", alt: "a park" }],
  variants: { x: { text: "Hello", media: [0], reply_settings: "everyone" } },
  routing: { include_channels: ["news"] },
};

export const change: Change = { route_filter: { include_any: ["ru"] }, rate_rps: null, reason: "Russian posts only" };

export function enqueued(answer: Submit["responses"][202]["content"]["application/json"]): number {
  return answer.enqueued;
}

export function remedies(problem: components["schemas"]["Problem"]): string[] {
  return (problem.errors ?? []).map((fault) => fault.remedy);
}
