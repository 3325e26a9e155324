// All scenarios, in the order in which they run. One is a small object:
//   name, title     how it is asked for and how it is headed (`quickTitle` where --quick changes what is said)
//   figures         keys of figures.mjs, in the order of the columns
//   targets         { path, figure, ratioAtMost | atMost | atLeast, …FromNode24 }: what we mean to reach
//   paths           where not every path makes sense, or another one does
//   protocol        'http' or 'udp' where the tunnel is one; tcp else
//   yardstick       the path whose figures are the measure, where it is not nginx
//   needs           programs that it cannot do without: 'wrk'
//   network         'small-buffers' where ordinary kernel buffers would disturb the machine, with `withoutNetwork`, the line to say else
//   measure(stage)  runs jobs of bench/load through the stage and returns the figures; `window` is for profiles
import { UsageError } from '../lib/options.mjs';
import { httpScenarios } from './http.mjs';
import { httpPolicyScenarios } from './http-policy.mjs';
import { p2pScenarios } from './p2p.mjs';
import { platformScenarios } from './platform.mjs';
import { tcpBesideBulk } from './tcp-beside-bulk.mjs';
import { tcpBulkScenarios } from './tcp-bulk.mjs';
import { tcpConnect } from './tcp-connect.mjs';
import { tcpEcho } from './tcp-echo.mjs';
import { tcpIdle } from './tcp-idle.mjs';
import { tcpStalled } from './tcp-stalled.mjs';
import { tlsNewConnections } from './tls-new-connections.mjs';
import { tlsPassthroughScenarios } from './tls-passthrough.mjs';
import { udpScenarios } from './udp.mjs';

export const SCENARIOS = [
  ...tcpBulkScenarios,
  ...[tcpEcho, tcpConnect, tcpBesideBulk, tcpIdle, tcpStalled],
  ...tlsPassthroughScenarios,
  ...udpScenarios,
  ...httpScenarios,
  ...httpPolicyScenarios,
  tlsNewConnections,
  ...p2pScenarios,
  ...platformScenarios,
];

/** @param {string[]} names in full, or the beginning of names: `tcp-bulk` means all four */
export function chooseScenarios(names) {
  if (names.length === 0) return SCENARIOS;
  const unknown = names.filter((name) => !SCENARIOS.some((scenario) => scenario.name.startsWith(name)));
  if (unknown.length > 0) throw new UsageError(`no scenario begins with ${unknown.join(', ')}; see --list`);
  return SCENARIOS.filter((scenario) => names.some((name) => scenario.name.startsWith(name)));
}
