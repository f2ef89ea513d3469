// What agents may do without asking, in words.
import type { PermissionMode } from "../api/types";

export const PERMISSIONS: Record<PermissionMode, string> = {
  default: "Ask before risky steps",
  plan: "Only look and plan",
  bypass: "Allow everything",
};
