// Kills and restarts the edge during direct downloads, which must lose nothing. Downloads must end when permission ends: the tunnel is
// deleted, or the peer is disconnected. Also covers a publisher that is replaced by a second program, and a subscriber that is killed.
import { setTimeout as delay } from 'node:timers/promises';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { P2pEdge, P2pProgram, secretFile, startBigFiles, startDownload } from './lib/stage.mjs';

const USAGE = 'usage: node tests/tools/p2p/edge-kill.mjs [--kills N] [--megabytes N]';
const MB = 1_000_000;
/** Maximum time that the contract allows until a download ends. */
const END_MS = 2_000;
/** Maximum time until a silent direct path in use is detected, on a machine with other load. */
const SILENCE_MS = 6_000;
/** `--drain-secs`, by default. */
const DRAIN_MS = 32_000;

async function openPair(edge, name, { files, secret = secretFile(edge.folder), flags = [] }) {
  const publisher = new P2pProgram(edge, ['publish', name, String(files)], { secret, flags });
  await publisher.says({ event: 'ready' });
  const subscriber = new P2pProgram(edge, ['connect', name, '--listen', '0'], { secret, flags });
  await subscriber.says({ event: 'path', path: flags.length === 0 ? 'direct' : 'relay' });
  return { publisher, subscriber, secret };
}

async function tryKills({ edge, files, check, say, values }) {
  const pair = await openPair(edge, 'killed', { files });
  const bytes = values.megabytes * MB;
  const begunAt = Date.now();
  const download = startDownload(pair.subscriber.port, bytes, 8 * MB);
  for (let kill = 0; kill < values.kills; kill += 1) {
    await delay(1_500);
    await edge.kill();
    await delay(1_000);
    await edge.begin();
    await until('the peer is listed again', async () => (await edge.peersOf('killed'))[0]?.path === 'direct', {
      timeoutMs: 40_000,
    });
    say(
      `killed ${kill + 1} times; the peer is listed again as direct${download.isOver ? `, the download was over: ${download.said}` : ''}`,
    );
  }
  check(
    (await download.over) === 'ok',
    `a download of ${values.megabytes} MB through ${values.kills} kills of the edge: ${download.said}`,
  );
  const left = pair.subscriber.events.filter(
    ({ event, path, heardAt }) => event === 'path' && path === 'relay' && heardAt > begunAt,
  );
  check(left.length === 0, `it never left the direct path: ${JSON.stringify(left)}`);
  const isTold = async () => (await edge.peersOf('killed'))[0]?.direct_bytes >= bytes;
  check(await until('the edge is told', isTold).catch(() => false), 'the edge is told of all direct bytes');
  await pair.subscriber.stop('SIGTERM');
  await pair.publisher.stop('SIGTERM');
}

/** Starts a download, calls `end`, and checks that the download ends in time. */
async function tryEnd({ edge, files, check }, name, what, end, flags = []) {
  const pair = await openPair(edge, name, { files, flags });
  const download = startDownload(pair.subscriber.port, 2_000 * MB, 5 * MB);
  await until('it has begun', download.hasBegun, { timeoutMs: 20_000 });
  await delay(1_000);
  check(!download.isOver, `${what}: a download runs ${pair.subscriber.path}`);
  const endedAt = Date.now();
  await end(pair);
  await until('the download ends', () => download.isOver, { timeoutMs: 20_000, everyMs: 10 }).catch(() => {});
  const ms = Date.now() - endedAt;
  check(download.isOver && ms <= END_MS, `${what}: the download ended after ${ms} ms`);
  return pair;
}

const rows = (program) =>
  program.events
    .map(({ event, code, message, state, reason }) => [event, code, message, state, reason].filter(Boolean).join(' '))
    .join(' | ');

async function tryEnds(stage) {
  const { edge, check } = stage;
  const ways = [
    ['direct', []],
    ['relay', ['--no-direct']],
  ];
  for (const [way, flags] of ways) {
    const deleted = await tryEnd(
      stage,
      `deleted-${way}`,
      `DELETE of the tunnel (${way})`,
      async () => {
        const { status } = await edge.rest('DELETE', `/api/tunnels/${await edge.tunnelOf(`deleted-${way}`)}`);
        check(status < 300, `DELETE is answered ${status}`);
      },
      flags,
    );
    await deleted.subscriber.stop();
    await deleted.publisher.stop();
    const dismissed = await tryEnd(
      stage,
      `dismissed-${way}`,
      `a peer is dismissed (${way})`,
      async ({ subscriber }) => {
        const id = await edge.tunnelOf(`dismissed-${way}`);
        const peerId = subscriber.events.findLast(({ event }) => event === 'path').peer_id;
        const { status } = await edge.rest('DELETE', `/api/tunnels/${id}/peers/${peerId}`);
        check(status === 204, `dismissal is answered ${status}`);
      },
      flags,
    );
    await until('it is told', () => /dismiss|was not found/.test(rows(dismissed.subscriber))).catch(() => {});
    check(
      /dismiss|was not found/.test(rows(dismissed.subscriber)),
      `the dismissed one says so: ${rows(dismissed.subscriber)}`,
    );
    check((await edge.peersOf(`dismissed-${way}`)).length === 0, 'and it is not listed');
    await dismissed.subscriber.stop();
    await dismissed.publisher.stop();
  }
}

/**
 * Publishes the name as soon as it is free. The previous publisher holds the name for a while, and until then a client that may not use
 * it ends.
 */
async function publishOnceFree({ edge, files }, name, secret) {
  for (;;) {
    const program = new P2pProgram(edge, ['publish', name, String(files)], { secret });
    await until('an answer', () => program.has({ event: 'ready' }) || program.has({ event: 'closed' }));
    if (program.has({ event: 'ready' })) return program;
    if (!program.has({ event: 'error', code: 'TUNNEL_P2P_NAME_IN_USE' })) throw new Error(rows(program));
    await delay(1_000);
  }
}

/**
 * Replaces a publisher. After SIGKILL it cannot say goodbye, so its name is held and the direct path ends by silence. After SIGTERM it
 * may finish running transfers.
 */
async function tryReplacement(stage, signal) {
  const { edge, files, check, say } = stage;
  const name = `replaced-${signal.toLowerCase()}`;
  const { publisher, subscriber, secret } = await openPair(edge, name, { files });
  const download = startDownload(subscriber.port, 2_000 * MB, 5 * MB);
  await until('it has begun', download.hasBegun, { timeoutMs: 20_000 });
  await delay(1_000);
  const endedAt = Date.now();
  const ending = publisher.stop(signal);
  await until('the download ends', () => download.isOver, { timeoutMs: 40_000, everyMs: 10 }).catch(() => {});
  const endMs = Date.now() - endedAt;
  const limitMs = signal === 'SIGKILL' ? SILENCE_MS : DRAIN_MS;
  check(download.isOver && endMs <= limitMs, `${signal} of the publisher: its download ended after ${endMs} ms`);
  await ending;
  const second = await publishOnceFree(stage, name, secret);
  say(`another program publishes after ${Date.now() - endedAt} ms`);
  await until('joined', () => second.has({ event: 'peer', state: 'joined' }), { timeoutMs: 40_000 }).catch(() => {});
  check(
    second.has({ event: 'peer', state: 'joined' }),
    `the subscriber is joined to it after ${Date.now() - endedAt} ms`,
  );
  await until('works', async () => (await startDownload(subscriber.port, 1 * MB).over) === 'ok').catch(() => {});
  const again = startDownload(subscriber.port, 5 * MB);
  check((await again.over) === 'ok', `and its service answers: ${again.said}`);
  return { second, subscriber, name };
}

async function trySubscriberKill({ edge, check }, { second, subscriber, name }) {
  const killedAt = Date.now();
  await subscriber.stop('SIGKILL');
  await until('gone', () => second.has({ event: 'peer', state: 'gone' }), { timeoutMs: 90_000 }).catch(() => {});
  check(second.has({ event: 'peer', state: 'gone' }), `a killed subscriber is gone after ${Date.now() - killedAt} ms`);
  check((await edge.peersOf(name)).length === 0, 'and the edge lists nobody');
  await second.stop();
}

await runScript(
  { name: 'p2p ends', usage: USAGE, options: { kills: 3, megabytes: 200 }, limitSecs: () => 600 },
  async ({ values, say, check }) => {
    const edge = await P2pEdge.start();
    const stage = { edge, files: await startBigFiles(), check, say, values };
    await tryKills(stage);
    await tryEnds(stage);
    await tryReplacement(stage, 'SIGTERM');
    await trySubscriberKill(stage, await tryReplacement(stage, 'SIGKILL'));
    return 'direct downloads outlive the edge and nothing outlives permission';
  },
);
