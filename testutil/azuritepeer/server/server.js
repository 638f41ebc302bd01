// The Azure Blob Storage peer of slotlease's tests: Azurite over plain HTTP on the
// loopback interface, with its data in a folder.
//
// It prints its URI as the first line of its standard output. It ends on SIGTERM,
// SIGINT or SIGHUP and, so that it never outlives the program that started it, when
// its standard input ends.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { parseArgs } = require("node:util");
const { default: BlobConfiguration } = require("azurite/dist/src/blob/BlobConfiguration");
const { default: BlobServer } = require("azurite/dist/src/blob/BlobServer");

const { values: options } = parseArgs({
  options: {
    host: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "0" },
    data: { type: "string" }, // An existing folder, one server at a time.
    remove: { type: "boolean", default: false }, // The folder, on a regular end.
  },
});
const folder = (name) => path.join(options.data, name);

const server = new BlobServer(
  new BlobConfiguration(
    options.host,
    Number(options.port),
    3600, // s that a connection may be idle: no request meets a closing one.
    folder("blobs.json"),
    folder("extents.json"),
    [{ locationId: "Default", locationPath: folder("contents"), maxConcurrency: 50 }],
    false, // no access log
    undefined,
    false, // no debug log
    undefined,
    false, // strict
    true, // any version of the API
  ),
);

// Azurite saves its lists of blobs every 5 s, and acknowledges before. Here the reply
// to a write waits for the next save, unless the data goes with the server.
const lists = [server.metadataStore.db, server.extentMetadataStore.db];
const save = (list) => new Promise((resolve, reject) => list.saveDatabase((err) => (err ? reject(err) : resolve())));
let saving = Promise.resolve();
let next;
function saved() {
  next ??= saving.then(() => {
    next = undefined;
    return (saving = Promise.all(lists.map(save)));
  });
  return next;
}

// So does the reply to a read that may show what isn't saved.
let unsaved = 0; // writes
if (!options.remove) {
  const serve = server.httpServer.listeners("request");
  server.httpServer.removeAllListeners("request");
  server.httpServer.on("request", (req, res) => {
    const writes = req.method !== "GET" && req.method !== "HEAD";
    if (writes) unsaved++;
    const { write, end } = res;
    const parts = [];
    res.write = (part, encoding, done) => {
      if (typeof encoding === "function") [encoding, done] = [undefined, encoding];
      parts.push([part, encoding]);
      if (done) process.nextTick(done);
      return true;
    };
    res.end = (...args) => {
      const reply = () => {
        if (writes) unsaved--;
        for (const part of parts) write.apply(res, part);
        res.write = write;
        end.apply(res, args);
      };
      if (unsaved === 0) reply();
      else saved().then(reply, () => res.destroy());
      return res;
    };
    for (const listener of serve) listener.call(server.httpServer, req, res);
  });
}

function stop() {
  if (options.remove) fs.rmSync(options.data, { recursive: true, force: true });
  process.exit();
}
process.stdin.resume().on("close", stop);
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, stop);

server.start().then(
  () => {
    const { address, port } = server.httpServer.address();
    fs.writeSync(1, `http://${address}:${port}/\n`);
  },
  (err) => {
    console.error(err);
    process.exit(1);
  },
);
