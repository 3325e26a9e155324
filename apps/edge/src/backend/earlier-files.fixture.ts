// State files written by an edge of version 0.1.0, before state files shared one mechanism. An upgrade must read these files.

const HASH = 'ab'.repeat(32);
const AT = Date.UTC(2030, 0, 1);
const OPENED = `{"kind":"open","tunnel_id":"tun_1","account_id":"alice","secret_hash":"${HASH}","endpoint":{"name":"shop"}}
{"kind":"open","tunnel_id":"tun_2","account_id":null,"secret_hash":"${HASH}","endpoint":{"transport":"tcp","port":20001},"group":{"name":"g","key_hash":"${HASH}"}}
`;

export const EARLIER = {
  AT,
  HASH,
  JOURNAL: `{"kind":"journal","journal_id":"jrn_1","next":4}
{"kind":"batch","journal_id":"jrn_1","first":1,"records":2}
{"kind":"opened","run_id":"run_1","tunnel_id":"tun_1","session_id":"ses_1","account_id":"alice","key_id":"key_1","name":"wéb","protocol":"http","label":"web","at":${AT}}
{"kind":"usage","tunnel_id":"tun_1","requests":1,"bytes":10,"at":${AT}}
{"kind":"batch","journal_id":"jrn_1","first":3,"records":1}
{"kind":"closed","tunnel_id":"tun_0","at":${AT},"abandoned":false}
{"kind":"acknowledged","journal_id":"jrn_1","last":2}
{"kind":"usage","tunnel_id":"tun_1","requests":2,"bytes":20,"at":${AT + 1}}
{"kind":"usage","tunnel_id":"tun_2","requests":3,"bytes":30,"at":${AT + 2}}
`,
  ENDPOINTS: `{"kind":"endpoints","version":1}
{"kind":"alive","at":${AT}}
${OPENED}${OPENED}{"kind":"closed","tunnel_id":"tun_1"}
{"kind":"open","tunnel_id":"tun_3","account_id":"bob","secret_hash":"${HASH}","endpoint":{"domain":"bücher.example","passes_tls":true}}
{"kind":"alive","at":${AT}}
{"kind":"stopped","at":${AT}}
`,
  RESERVED_NAMES: `{"file":"reserved-names","version":1}
{"kind":"subdomain","label":"shop","account_id":"alice","group_key_hash":null}
{"kind":"tcp","label":"20042","account_id":"bob","group_key_hash":null}
{"domain":"a.example","account_id":"alice"}
{"kind":"subdomain","label":"blog","account_id":"bob","group_key_hash":"k"}
{"kind":"subdomain","label":"shop","account_id":null,"group_key_hash":null}
`,
  USED_NAMES: `{"file":"used-names","version":1}
{"label":"shop","account_id":"alice","group_key_hash":null,"at":${AT}}
{"label":"shop","account_id":"alice","group_key_hash":null,"at":${AT}}
{"label":"news","account_id":null,"group_key_hash":null,"at":${AT}}
{"label":"pool","account_id":"bob","group_key_hash":"key","at":${AT}}
`,
  NAMES: `{"version":1,"names":[
{"kind":"subdomain","label":"shop","state":"held","account":"alice","group_key_hash":null,"in_use":true,"last_used_at":"2030-01-01T00:00:00.000Z","released_at":null},
{"kind":"tcp","label":"20001","state":"released","account":"bob","group_key_hash":"k","in_use":false,"assigned":true,"last_used_at":"2030-01-01T00:00:00.000Z","released_at":"2030-01-01T00:00:00.001Z"}
]}
`,
} as const;
