// The Cosmos DB peer of slotlease's tests: @vercel/cosmosdb-server over plain
// HTTP on the loopback interface, with its data in a folder.
//
// It prints its URI as the first line of its standard output. It ends on SIGTERM,
// SIGINT or SIGHUP and, so that it never outlives the program that started it, when
// its standard input ends.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { Readable } = require("node:stream");
const { parseArgs } = require("node:util");
const { createHttpServer } = require("@vercel/cosmosdb-server");

const { values: options } = parseArgs({
  options: {
    host: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "0" },
    data: { type: "string" }, // An existing folder, one server at a time.
    remove: { type: "boolean", default: false }, // The folder, on a regular end.
  },
});
const journal = path.join(options.data, "journal");

const server = createHttpServer({ keepAlive: true });
server.keepAliveTimeout = 0; // Clients hang up; no request meets a closing connection.
const [emulate] = server.listeners("request");
server.removeAllListeners("request");

const isItem = (url) => /^\/+dbs\/[^/]+\/colls\/[^/]+\/docs\/[^/]+\/?$/.test(url);

const isQuery = ({ headers }) =>
  headers["content-type"] === "application/query+json" ||
  /^true$/i.test(headers["x-ms-documentdb-isquery"] || "");

const writes = (request) => request.method !== "GET" && !isQuery(request);

// request makes what the emulator reads of a request whose body is here already.
function request({ method, url, headers, body }) {
  return Object.assign(Readable.from([Buffer.from(body)]), { method, url, headers });
}

// ask has a request answered that no client sent, and returns the status.
function ask(asked) {
  return new Promise((resolve) => {
    const res = { statusCode: 200, setHeader() {}, end: () => resolve(res.statusCode) };
    emulate(request(asked), res);
  });
}

// orphaned says whether a request is for the items of a container that is missing.
async function orphaned({ url }) {
  const container = /^(\/+dbs\/[^/]+\/colls\/[^/]+)\/docs/.exec(url);
  return container && (await ask({ method: "GET", url: container[1], headers: {}, body: "" })) === 404;
}

// answer serves one request. What is mended: the emulator throws at the read of an
// item that is absent, unless the read may cross partitions, which changes nothing
// else; it throws at the creation of an item in a container that is missing, and
// doesn't tell a missing container from a missing item; and it names its own
// endpoint with https, though it speaks HTTP.
async function answer(req, res) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const asked = {
    at: Date.now(),
    method: req.method,
    url: req.url,
    headers: { ...req.headers },
    body: Buffer.concat(chunks).toString(),
  };
  delete asked.headers.authorization;
  if (asked.method === "GET" && isItem(asked.url)) {
    asked.headers["x-ms-documentdb-query-enablecrosspartition"] = "true";
  }
  const end = res.end;
  res.end = async (text) => {
    if (asked.method === "GET" && asked.url === "/") {
      text = text.replaceAll('"https://', '"http://');
    }
    if (res.statusCode >= 400 && (await orphaned(asked))) {
      res.statusCode = 404;
      res.setHeader("x-ms-substatus", "1003");
      text = '{"code":"NotFound","message":"Owner resource does not exist"}';
    }
    if (res.statusCode < 300 && writes(asked)) {
      asked.at = wroteAt(text) ?? asked.at;
      fs.writeSync(log, JSON.stringify(asked) + "\n");
    }
    end.call(res, text);
  };
  emulate(request(asked), res);
}

// wroteAt is the time of a write by its answer: another second may have begun since it was asked for.
function wroteAt(text) {
  const seconds = text ? JSON.parse(text)._ts : undefined;
  return seconds === undefined ? undefined : seconds * 1000;
}

// replay does again what the journal holds, each write at its time, so that a
// restarted server has the data that it acknowledged. Only etags are new.
async function replay() {
  if (!fs.existsSync(journal)) return;
  const now = Date.now;
  for (const line of fs.readFileSync(journal, "utf8").split("\n")) {
    if (line === "") continue;
    const asked = JSON.parse(line);
    Date.now = () => asked.at;
    await ask(asked);
  }
  Date.now = now;
}

function stop() {
  if (options.remove) fs.rmSync(options.data, { recursive: true, force: true });
  process.exit();
}
process.stdin.resume().on("close", stop);
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, stop);

let log;
let replayed;
server.on("request", (req, res) => {
  replayed.then(() => answer(req, res)).catch(() => res.destroy());
});
// The emulator itself begins when it listens, so clients may come before the
// journal was replayed; they wait.
server.listen(Number(options.port), options.host, () => {
  replayed = replay().then(() => {
    log = fs.openSync(journal, "a");
    const { address, port } = server.address();
    fs.writeSync(1, `http://${address}:${port}/\n`);
  });
  replayed.catch((err) => {
    console.error(err);
    process.exit(1);
  });
});
