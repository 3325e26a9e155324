// Keeps the caller's additional certificate authorities out of the tests. Tests connect only to loopback, so the authorities must not
// affect their results. Node.js 20 also parses the file named by NODE_EXTRA_CA_CERTS at the start of every process, which costs 65 ms of
// processor time for each worker and each program that a test starts. Tests that install packages from a registry still need the file,
// because a company's proxy for outgoing connections may have a certificate of the company.

const NAME = 'NODE_EXTRA_CA_CERTS';
/** Variable that holds the caller's value for tests that install packages. Worker processes of vitest inherit the variable. */
const KEPT = 'CALLERS_EXTRA_CA_CERTS';

/** Moves the caller's value to a variable that Node.js does not read. vitest.config.ts calls this function before the workers start. */
export const setCallersCertificatesAside = (env: NodeJS.ProcessEnv = process.env): void => {
  const file = env[NAME];
  if (file === undefined) return;
  env[KEPT] = file;
  delete env[NAME];
};

/** Returns the environment for a program that installs packages: with the caller's certificate authorities. */
export const withCallersCertificates = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv => {
  const { [KEPT]: file, ...rest } = env;
  return file === undefined ? rest : { ...rest, [NAME]: file };
};
