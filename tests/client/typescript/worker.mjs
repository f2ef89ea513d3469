// The thread as a worker: asked for, it plays against the server in the query.
import * as sdk from "index.js";
import { thread } from "thread.mjs";

export default {
  async fetch(request) {
    return Response.json(await thread(sdk, new URL(request.url).searchParams.get("server")));
  },
};
