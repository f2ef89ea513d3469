// Dark or light: as the system says, or as the person chose.
import { createStore } from "./store";

export type Theme = "system" | "light" | "dark";
const KEY = "ostler.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

export const theme = createStore<Theme>(remembered());

function remembered(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system";
  }
}

function show(): void {
  const chosen = theme.get();
  document.documentElement.dataset.theme = chosen === "system" ? (dark.matches ? "dark" : "light") : chosen;
}

export function chooseTheme(next: Theme): void {
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Not remembered, but shown.
  }
  theme.set(next);
}

export function toggleTheme(): void {
  chooseTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
}

export function startTheme(): void {
  show();
  theme.subscribe(show);
  dark.addEventListener("change", show);
}
