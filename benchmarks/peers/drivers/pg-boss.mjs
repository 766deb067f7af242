// pg-boss: settings are `boss` for the instance, `queue` for the queue and `work` for its workers.

import { PgBoss } from "pg-boss";

import { asked_to_stop, main, ready, run } from "./protocol.mjs";

const QUEUE = "job";

async function started({ store, settings }, more = {}) {
  const boss = new PgBoss({ connectionString: store, ...more, ...settings.boss });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue(QUEUE, settings.queue ?? {});
  return boss;
}

const data = (job) => ({ n: job.number, at: job.atUs });
const startAfter = (job) => new Date(job.atUs / 1000);

await main({
  async install(request) {
    await (await started(request)).stop();
  },

  async open(request) {
    // What creates needs neither maintenance nor cron.
    const boss = await started(request, { supervise: false, schedule: false });
    return {
      createOne: (job) => boss.send(QUEUE, data(job), { startAfter: startAfter(job) }),
      createMany: (jobs) => boss.insert(QUEUE, jobs.map((job) => ({ data: data(job), startAfter: startAfter(job) }))),
      close: () => boss.stop({ graceful: false }),
    };
  },

  async work(request) {
    const stop = asked_to_stop();
    const boss = await started(request);
    await boss.work(QUEUE, request.settings.work ?? {}, (jobs) =>
      Promise.all(jobs.map((job) => run(job.data.n, job.data.at))),
    );
    ready();
    await stop;
    await boss.stop({ timeout: 5000 });
  },
});
