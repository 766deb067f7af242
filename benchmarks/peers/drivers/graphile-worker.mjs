// graphile-worker: settings are its preset's, and `pool`, the connections of an application that creates jobs.

import { Logger, makeWorkerUtils, run as runWorker, runMigrations } from "graphile-worker";
import pg from "pg";

import { asked_to_stop, main, ready, run } from "./protocol.mjs";

// By its defaults it writes a line for every job.
const silent = new Logger(() => () => {});
const at = (job) => new Date(job.atUs / 1000);
const payload = (job) => ({ n: job.number, at: job.atUs });

await main({
  async install({ store }) {
    await runMigrations({ connectionString: store, logger: silent });
  },

  async open({ store, settings }) {
    const pgPool = new pg.Pool({ connectionString: store, max: settings.pool ?? 10 });
    pgPool.on("error", console.error);
    pgPool.on("connect", (client) => client.on("error", console.error));
    const utils = await makeWorkerUtils({ pgPool, logger: silent });
    return {
      createOne: (job) => utils.addJob("job", payload(job), { runAt: at(job) }),
      createMany: (jobs) =>
        utils.addJobs(jobs.map((job) => ({ identifier: "job", payload: payload(job), runAt: at(job) }))),
      close: async () => {
        await utils.release();
        await pgPool.end();
      },
    };
  },

  async work({ store, settings }) {
    const stop = asked_to_stop();
    const runner = await runWorker({
      preset: { worker: { connectionString: store, logger: silent, ...settings } },
      parsedCronItems: [],
      noHandleSignals: true,
      taskList: { job: ({ n, at }) => run(n, at) },
    });
    ready();
    await stop;
    await runner.stop();
  },
});
