// What every driver in JavaScript has in common: the same as protocol.py and job.py, which say what is asked for.

import fs from "node:fs";
import path from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as rest } from "node:timers/promises";

const IN_FLIGHT = 64;
const MOST_JOBS = 1 << 17;
const REST_MS = Number(process.env.BENCHMARK_REST_S ?? 0) * 1000;

/** A file with a record for every job that this process has run. */
class Records {
  constructor(folder) {
    this.file = fs.openSync(path.join(folder, `records-${process.pid}`), "w");
    this.runs = new Uint8Array(MOST_JOBS);
    this.record = new Float64Array(3);
    this.bytes = Buffer.from(this.record.buffer);
  }

  write(number, plannedUs, startedUs) {
    this.record[0] = ++this.runs[number];
    this.record[1] = plannedUs;
    this.record[2] = startedUs;
    fs.writeSync(this.file, this.bytes, 0, 24, number * 24);
  }
}

let records;

/** The whole job. Nothing to wait for is returned if it does not rest. */
export function run(number, plannedUs) {
  const startedUs = Math.floor((performance.timeOrigin + performance.now()) * 1000);
  records ??= new Records(process.env.BENCHMARK_RECORDS);
  if (REST_MS) return rest(REST_MS).then(() => records.write(number, plannedUs, startedUs));
  records.write(number, plannedUs, startedUs);
}

export function ready() {
  fs.writeSync(1, "ready\n");
}

/** Resolves when the process is asked to end. */
export function asked_to_stop() {
  const hold = setInterval(() => {}, 1 << 30);
  return new Promise((resolve) => {
    process.once("SIGTERM", () => {
      clearInterval(hold);
      resolve();
    });
  });
}

async function create(request, createOne, createMany) {
  const { mode = "bulk", count, seconds = 3600, first_number = 0, lead_ms = 0, step_us = 0, settings = {} } = request;
  const [batch, creators] =
    mode === "single" ? [1, 1]
    : mode === "in flight" ? [1, IN_FLIGHT]
    : [settings.batch ?? 1000, settings.batches_in_flight ?? 4];
  const started = performance.now();
  const ends = started + seconds * 1000;
  const firstUs = (Date.now() + lead_ms) * 1000;
  let taken = 0;

  const take = () => {
    const jobs = [];
    if (performance.now() >= ends) return jobs;
    for (; jobs.length < batch && taken < count; taken++) {
      jobs.push({ number: first_number + taken, atUs: firstUs + taken * step_us });
    }
    return jobs;
  };

  const creator = async () => {
    for (let jobs = take(); jobs.length; jobs = take()) {
      await (mode === "bulk" ? createMany(jobs) : createOne(jobs[0]));
    }
  };

  await Promise.all(Array.from({ length: creators }, creator));
  return { created: taken, seconds: (performance.now() - started) / 1000, first_us: firstUs };
}

/** `driver` has install, open (which returns createOne, createMany and close) and work, each given the request. */
export async function main(driver) {
  const [command, asked] = process.argv.slice(2);
  const request = { settings: {}, ...JSON.parse(asked) };
  let answer = {};
  if (command === "create" || command === "fill") {
    const { createOne, createMany, close } = await driver.open(request);
    answer = await create(request, createOne, createMany);
    await close();
  } else if (command === "install" || command === "work") {
    await driver[command](request);
  }
  process.stdout.write(JSON.stringify(answer) + "\n");
}
