// A push service on this machine with one subscription, and what a browser does with the messages of one (RFC 8188 and 8291).
import { createDecipheriv, createECDH, hkdfSync } from "node:crypto";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";

export async function startPushService() {
  const browser = createECDH("prime256v1");
  browser.generateKeys();
  const auth = Buffer.alloc(16, 7);
  const got = [];
  const service = createServer(async (request, answer) => {
    got.push(opened(browser, auth, await buffer(request)));
    answer.writeHead(201).end();
  });
  await new Promise((resolve) => service.listen(0, "127.0.0.1", resolve));
  const keys = { p256dh: browser.getPublicKey("base64url"), auth: auth.toString("base64url") };
  return { subscription: { endpoint: `http://127.0.0.1:${service.address().port}/send/abc`, keys }, got, end: () => service.close() };
}

function opened(browser, auth, body) {
  const [salt, sender, sealed] = [body.subarray(0, 16), body.subarray(21, 86), body.subarray(86)];
  const derived = (key, salt, about, length) => Buffer.from(hkdfSync("sha256", key, salt, about, length));
  const about = Buffer.concat([Buffer.from("WebPush: info\0"), browser.getPublicKey(), sender]);
  const secret = derived(browser.computeSecret(sender), auth, about, 32);
  const key = derived(secret, salt, "Content-Encoding: aes128gcm\0", 16);
  const cipher = createDecipheriv("aes-128-gcm", key, derived(secret, salt, "Content-Encoding: nonce\0", 12));
  cipher.setAuthTag(sealed.subarray(-16));
  const text = Buffer.concat([cipher.update(sealed.subarray(0, -16)), cipher.final()]);
  return text.subarray(0, text.lastIndexOf(2)).toString();
}

/** Hands a message to the service worker of a page, as the browser does that got it. */
export async function deliver(page, message) {
  const devtools = await page.context().newCDPSession(page);
  const known = new Promise((resolve) => devtools.on("ServiceWorker.workerRegistrationUpdated", ({ registrations }) => registrations[0] && resolve(registrations[0])));
  await devtools.send("ServiceWorker.enable");
  const { registrationId } = await known;
  await devtools.send("ServiceWorker.deliverPushMessage", { origin: new URL(page.url()).origin, registrationId, data: message });
  await devtools.detach();
}
