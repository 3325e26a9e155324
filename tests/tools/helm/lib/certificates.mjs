// Certificates of new authorities, made with openssl.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const must = (command, args) => {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.slice(0, 3).join(' ')}: ${stderr.trim()}`);
  return stdout;
};

/** A certificate of a new authority for the names. */
export function certificateFor(folder, name, names) {
  const file = (ending) => join(folder, `${name}.${ending}`);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const ca = ['-keyout', file('ca.key'), '-out', file('ca.crt'), '-subj', '/CN=test CA'];
  must('openssl', ['req', '-x509', ...key, ...ca]);
  const signed = ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-addext', 'basicConstraints=CA:FALSE'];
  const alternatives = ['-addext', `subjectAltName=${names.map((one) => `DNS:${one}`).join(',')}`];
  const own = ['-keyout', file('key'), '-out', file('crt'), '-subj', `/CN=${names[0]}`];
  must('openssl', ['req', '-x509', ...key, ...own, ...signed, ...alternatives]);
  const read = (ending) => readFileSync(file(ending), 'utf8');
  return { 'tls.crt': read('crt'), 'tls.key': read('key'), 'ca.crt': read('ca.crt') };
}
