// The visitors: a separate process that runs a single job at a time: `job` -> `ready` (connected and warm) -> `go` -> `done`. The harness
// measures the time between `ready` and `done`.
import { connections } from './connection.mjs';
import { bulk } from './jobs/bulk.mjs';
import { connect } from './jobs/connect.mjs';
import { datagramEcho, datagramFlood } from './jobs/datagrams.mjs';
import { echo } from './jobs/echo.mjs';
import { endless } from './jobs/endless.mjs';
import { hold } from './jobs/hold.mjs';
import { httpProbe } from './jobs/http-probe.mjs';
import { paced } from './jobs/paced.mjs';
import { stall } from './jobs/stall.mjs';
import { tlsConnect } from './jobs/tls-connect.mjs';
import { wrk } from './jobs/wrk.mjs';

/** Jobs by name. Each takes (address, parameters, ready) and returns figures. A job throws if an answer is wrong. */
const JOBS = {
  bulk,
  connect,
  datagramEcho,
  datagramFlood,
  echo,
  endless,
  hold,
  httpProbe,
  paced,
  stall,
  tlsConnect,
  wrk,
};

let go = null;

function ready() {
  process.send({ type: 'ready' });
  return new Promise((resolve) => {
    go = resolve;
  });
}

async function run({ job, address, parameters }) {
  try {
    const result = await JOBS[job](address, parameters, ready);
    process.send({ type: 'done', result });
  } catch (error) {
    process.send({ type: 'failed', message: error.message });
  } finally {
    for (const socket of connections) socket.destroy();
  }
}

process.on('message', (message) => (message.type === 'go' ? go?.() : void run(message)));
process.on('disconnect', () => process.exit());
