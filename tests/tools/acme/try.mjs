// Tests the ACME client and the certificate manager against pebble, the test authority of Let's Encrypt: npm run try:acme
// Installs pebble and pebble-challtestsrv into .cache/acme with Go. Without Go, the script prints a message and ends.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BIN, install, run, VERSION } from './lib/install.mjs';

/** Runs a suite and returns its counts. A suite that did not finish counts as a failure. */
const suite = (file, reuse) => {
  const report = join(BIN, `report-${file}-${reuse}.json`);
  rmSync(report, { force: true });
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--config', 'tests/tools/acme/vitest.config.ts', file];
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const status = run(process.execPath, [...args, ...reporters], { PEBBLE_BIN: BIN, PEBBLE_AUTHZREUSE: reuse });
  if (!existsSync(report)) return { passed: 0, failed: 1 };
  const { numPassedTests: passed, numFailedTests: failed } = JSON.parse(readFileSync(report, 'utf8'));
  return { passed, failed: status === 0 ? failed : Math.max(1, failed) };
};

const conformance = (reuse) => {
  console.log(`pebble ${VERSION}, strict, half of the nonces refused, authorizations reused: ${reuse} %`);
  return suite('pebble-suite', reuse);
};

/** Runs the recipes suite. Its tests report missing programs. */
const recipes = () => {
  console.log('recipes for dns-01: BIND with nsupdate, an HTTP API with curl');
  return suite('recipes-suite', '0');
};

const installed = install('pebble', 'pebble-challtestsrv');
if (installed === 'no Go') console.log('skipped: Go is not found, and pebble is installed with it');
if (installed === 'failed') console.log('pebble could not be installed');
const counts =
  installed === 'ready'
    ? [...['0', '100'].map(conformance), recipes()]
    : [{ passed: 0, failed: installed === 'failed' ? 1 : 0 }];
const sum = (key) => counts.reduce((total, count) => total + count[key], 0);
console.log(`${sum('passed')} passed, ${sum('failed')} failed`);
process.exitCode = sum('failed') === 0 ? 0 : 1;
