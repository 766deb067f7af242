// A client in Node: creates an action, lists the actions, deletes it again.
//
//     npm ci
//     node client.js 127.0.0.1:7070
//
// It needs the .proto files of this repository, and nothing else: they use protobuf's own types only.

const path = require('node:path');
const { promisify } = require('node:util');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const PROTOS = path.join(__dirname, '..', '..', 'proto');
const OPTIONS = { includeDirs: [PROTOS], keepCase: true, longs: String, enums: String, oneofs: true };

function connect(server) {
  const definition = protoLoader.loadSync('clepsydra/v1/scheduler.proto', OPTIONS);
  const { SchedulerService } = grpc.loadPackageDefinition(definition).clepsydra.v1;
  const client = new SchedulerService(server, grpc.credentials.createInsecure());
  // Every call gets a deadline, so that a scheduler that does not answer is noticed.
  const call = (method) => (request) =>
    promisify(client[method]).call(client, request, { deadline: Date.now() + 10_000 });
  return {
    create: call('CreateAction'),
    batchCreate: call('BatchCreateActions'),
    list: call('ListActions'),
    remove: call('DeleteAction'),
    close: () => client.close(),
  };
}

async function main(server) {
  const scheduler = connect(server);
  try {
    const created = await scheduler.create({
      action: {
        meta: { id: 'from-node', labels: { language: 'node' } },
        spec: { schedule: { delay: { seconds: 3600 } }, log: { message: 'hello from Node' } },
      },
      // Makes it safe to repeat the call.
      request_id: 'node-example-1',
    });
    console.log(`created ${created.meta.id}: ${created.status.state}`);

    const listed = await scheduler.list({ page_size: 100 });
    console.log(`listed ${listed.actions.map((action) => action.meta.id).join(', ')}`);

    // Each item of a batch has its own outcome.
    const batch = await scheduler.batchCreate({
      requests: [{ action: { meta: { id: 'wrong' }, spec: { log: {}, retry: { jitter: 2 } } } }],
    });
    const [{ error }] = batch.results;
    console.log(`refused ${error.reason}: ${error.field_violations.map((each) => each.field).join(', ')}`);

    await scheduler.remove({ id: 'from-node' });
    console.log('deleted from-node');

    await scheduler.remove({ id: 'from-node' }).catch((failure) => {
      console.log(`then ${grpc.status[failure.code]}: ${failure.details}`);
    });
  } finally {
    scheduler.close();
  }
}

main(process.argv[2] ?? '127.0.0.1:7070').catch((failure) => {
  console.error(failure.message);
  process.exitCode = 1;
});
