// Plays the thread in Node, Bun or Deno with the SDK at the path, or by the name, of the first argument.
import { thread } from "./thread.mjs";

const [place, url] = process.argv.slice(2);
console.log(JSON.stringify(await thread(await import(place), url)));
