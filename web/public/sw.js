// Shows notifications that the server pushes or that pages may not show, and brings the page back when one is pressed. It keeps nothing.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("push", (event) => {
  const { title = "Ostler", text = "", url = "/", tag } = event.data?.json() ?? {};
  const shown = self.clients.matchAll({ type: "window", includeUncontrolled: true }).then((pages) => {
    if (pages.some((page) => page.visibilityState === "visible")) return undefined; // it is seen there
    return self.registration.showNotification(title, { body: text, tag, data: { url } });
  });
  event.waitUntil(shown);
});
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const url = event.notification.data?.url ?? "/";
  event.waitUntil(
    self.clients.matchAll({ type: "window" }).then(async ([page]) => {
      if (!page) return self.clients.openWindow(url);
      await page.focus();
      return page.navigate(url);
    }),
  );
});
