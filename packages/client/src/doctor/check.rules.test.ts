import { describe, expect, it } from 'vitest';
import {
  CHECK_IDS,
  type Check,
  type CheckId,
  diagnose,
  type Finding,
  inTheWay,
  outOfTime,
  skippedFor,
  statusOfHop,
  titleOf,
} from './check.rules.ts';

const check = (id: CheckId, status: Finding['status']): Check => ({
  id,
  title: titleOf(id),
  status,
  detail: '',
  hint: '',
  ms: 0,
});

describe('the checks of the doctor', () => {
  it('run in the order that the contract names', () => {
    expect(CHECK_IDS.join(' ')).toBe(
      'config key_file clock proxy dns tcp tls edge key carriers latency bandwidth udp nat targets platform',
    );
  });

  it('are skipped when a prerequisite fails, and name the first failed prerequisite', () => {
    const found = new Map<CheckId, Finding>([
      ['tcp', { status: 'fail', detail: '', hint: '' }],
      ['dns', { status: 'fail', detail: '', hint: '' }],
    ]);
    expect(inTheWay('edge', found)).toBe('dns');
    expect(inTheWay('targets', found)).toBeNull();
    expect(skippedFor('dns')).toEqual({
      status: 'skip',
      detail: 'skipped: fix server name first',
      hint: '',
    });
  });

  it('still run after a warning or a skipped prerequisite', () => {
    const found = new Map<CheckId, Finding>([
      ['tls', { status: 'warn', detail: '', hint: '' }],
      ['dns', { status: 'skip', detail: '', hint: '' }],
    ]);
    expect(inTheWay('key', found)).toBeNull();
  });

  it('fail at the timeout if every tunnel needs them, and are skipped otherwise', () => {
    expect(outOfTime('edge').status).toBe('fail');
    expect(outOfTime('carriers').status).toBe('fail');
    for (const id of ['clock', 'latency', 'targets', 'platform'] as const) expect(outOfTime(id).status).toBe('skip');
  });

  it('have no circular prerequisites', () => {
    for (const id of CHECK_IDS) {
      const found = new Map<CheckId, Finding>([[id, { status: 'fail', detail: '', hint: '' }]]);
      expect(inTheWay(id, found)).toBeNull();
      for (const behind of CHECK_IDS.filter((other) => inTheWay(other, found) === id)) {
        expect(inTheWay(id, new Map([[behind, { status: 'fail', detail: '', hint: '' }]]))).toBeNull();
      }
    }
  });

  it('list a failure as the first problem, before a warning that is displayed earlier', () => {
    const { ok, first, checks } = diagnose([check('targets', 'fail'), check('key_file', 'warn'), check('tcp', 'ok')]);
    expect(ok).toBe(false);
    expect(first?.id).toBe('targets');
    expect(checks.map(({ id }) => id)).toEqual(['key_file', 'tcp', 'targets']);
  });

  it('strip terminal control characters from their details', () => {
    const { checks } = diagnose([{ ...check('edge', 'fail'), detail: 'a\u001b[2Jb\r\nc\u009bd' }]);
    expect(checks[0]?.detail).toBe('a [2Jb c d');
  });

  it('pass as a whole with warnings only, and name the first warning', () => {
    expect(diagnose([check('udp', 'warn'), check('tls', 'warn')])).toMatchObject({ ok: true, first: { id: 'tls' } });
    expect(diagnose([check('udp', 'ok'), check('nat', 'skip')])).toMatchObject({ ok: true, first: null });
  });

  it('give each hop the worst status of its checks', () => {
    const checks = [check('dns', 'ok'), check('tcp', 'fail'), check('tls', 'skip'), check('config', 'warn')];
    expect(statusOfHop('network', checks)).toBe('fail');
    expect(statusOfHop('machine', checks)).toBe('warn');
    expect(statusOfHop('proxy', checks)).toBe('skip');
  });
});
