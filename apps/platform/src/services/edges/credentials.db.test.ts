import { Secret } from '@tunnel/runtime';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createCredential,
  encryptApiSecrets,
  ensureLocalEdge,
  listCredentials,
  newEdgeCredential,
  revokeCredential,
  verifyCredential,
} from './credentials.ts';
import { addEdge, createLinkFixture, type LinkFixture, OPERATOR } from './link.fixture.ts';

let fixture: LinkFixture;
beforeAll(async () => {
  fixture = await createLinkFixture();
});
afterAll(() => fixture.close());

describe('edge credentials', () => {
  it('are shown once, stored as a hash, and valid until revoked', async () => {
    const { edgeId, credential } = await createCredential(fixture, OPERATOR, 'eu-1');
    expect(credential.reveal()).toMatch(/^tne_[A-Za-z0-9_-]{43}$/);
    const rows = await fixture.db.selectFrom('edges').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain(credential.reveal());
    expect(await verifyCredential(fixture.db, credential)).toEqual({ kind: 'edge', edgeId });
    expect(await verifyCredential(fixture.db, new Secret(`${credential.reveal()}x`))).toBeNull();
    expect(await listCredentials(fixture)).toMatchObject([
      { id: edgeId, name: 'eu-1', revokedAt: null, regionId: null },
    ]);
    expect(await revokeCredential(fixture, OPERATOR, 'eu-1')).toEqual({ edgeId, name: 'eu-1' });
    expect(await verifyCredential(fixture.db, credential)).toBeNull();
    await expect(revokeCredential(fixture, OPERATOR, edgeId)).rejects.toMatchObject({ code: 'EDGE_UNKNOWN' });
    const audit = await fixture.db
      .selectFrom('audit_log')
      .select(['actor', 'action', 'details'])
      .orderBy('id')
      .execute();
    expect(audit).toEqual([
      { actor: 'operator:test', action: 'edge.created', details: { edge_id: edgeId, name: 'eu-1' } },
      { actor: 'operator:test', action: 'edge.revoked', details: { edge_id: edgeId, name: 'eu-1' } },
    ]);
  });

  it('have unique valid names, which become free after revocation', async () => {
    await createCredential(fixture, OPERATOR, 'us');
    await expect(createCredential(fixture, OPERATOR, 'us')).rejects.toMatchObject({ code: 'EDGE_NAME_TAKEN' });
    await revokeCredential(fixture, OPERATOR, 'us');
    await createCredential(fixture, OPERATOR, 'us');
    for (const name of ['', 'a b', 'a\0', 'x'.repeat(101)]) {
      await expect(createCredential(fixture, OPERATOR, name)).rejects.toMatchObject({ code: 'EDGE_NAME_INVALID' });
    }
  });
});

describe('the API secret of an edge', () => {
  it('is encrypted at the next start if stored unencrypted, even for a silent edge', async () => {
    const { actor } = await addEdge(fixture, 'eu', 'silent');
    const heard = await addEdge(fixture, 'eu', 'heard');
    const secretOf = async ({ edgeId: id }: typeof actor) =>
      (await fixture.db.selectFrom('edges').select('api_secret').where('id', '=', id).executeTakeFirstOrThrow())
        .api_secret;
    const before = await secretOf(heard.actor);
    await fixture.db.updateTable('edges').set({ api_secret: 'in-clear' }).where('id', '=', actor.edgeId).execute();
    await encryptApiSecrets(fixture.db, fixture.masterKey());
    const purpose = { kind: 'edge-api-secret', id: actor.edgeId } as const;
    expect(fixture.masterKey().decrypt(purpose, await secretOf(actor))).toBe('in-clear');
    expect(await secretOf(heard.actor)).toBe(before);
    const rows = await fixture.db.selectFrom('edges').selectAll().execute();
    expect(JSON.stringify(rows)).not.toContain('in-clear');
  });
});

describe("the stack's own edge", () => {
  it('keeps its row over restarts and accepts only the latest credential', async () => {
    const first = newEdgeCredential();
    const second = newEdgeCredential();
    const edgeId = await ensureLocalEdge(fixture.db, 'local', first);
    expect(await ensureLocalEdge(fixture.db, 'local', first)).toBe(edgeId);
    expect(await ensureLocalEdge(fixture.db, 'local', second)).toBe(edgeId);
    expect(await verifyCredential(fixture.db, first)).toBeNull();
    expect(await verifyCredential(fixture.db, second)).toEqual({ kind: 'edge', edgeId });
  });

  it('is recreated after a revocation', async () => {
    const credential = newEdgeCredential();
    const before = await ensureLocalEdge(fixture.db, 'local', credential);
    await revokeCredential(fixture, OPERATOR, 'local');
    const edgeId = await ensureLocalEdge(fixture.db, 'local', credential);
    expect(edgeId).not.toBe(before);
    expect(await verifyCredential(fixture.db, credential)).toEqual({ kind: 'edge', edgeId });
  });
});
