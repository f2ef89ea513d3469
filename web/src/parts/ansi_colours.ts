// The colours of a terminal as HTML.
import { AnsiUp } from "ansi_up";

export function toHtml(text: string): string {
  const ansi = new AnsiUp();
  ansi.use_classes = true;
  return ansi.ansi_to_html(text);
}
