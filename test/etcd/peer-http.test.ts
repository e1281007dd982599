import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/system-clock.ts';
import { EtcdHttpError } from '../../src/etcd/http-get.ts';
import { askPeerMembers, askPeerVersion } from '../../src/etcd/peer-http.ts';
import { tinyHttp } from '../support/tiny-http.ts';

function answering(body: string, clusterId: string | undefined = 'c9d32d1b35cf9e6', status = 200) {
  const headers = clusterId === undefined ? {} : { 'X-Etcd-Cluster-ID': clusterId };
  return tinyHttp((_request, response) => response.writeHead(status, headers).end(body));
}

describe('the peer side of a member', () => {
  test('ids of 64 bits arrive whole', async () => {
    await using server = await answering(
      '[{"id":18446744073709551615,"peerURLs":["http://127.0.0.1:1"],"name":"n1","clientURLs":["http://127.0.0.1:2"]},' +
        '{"id":9372538179322589801,"peerURLs":["http://127.0.0.1:3"],"isLearner":true}]\n',
    );
    expect(await askPeerMembers({ peerUrl: server.url, clock: systemClock })).toEqual({
      clusterId: 0xc9d32d1b35cf9e6n,
      members: [
        { id: 9372538179322589801n, name: '', peerUrls: ['http://127.0.0.1:3'], clientUrls: [], isLearner: true },
        {
          id: 18446744073709551615n,
          name: 'n1',
          peerUrls: ['http://127.0.0.1:1'],
          clientUrls: ['http://127.0.0.1:2'],
          isLearner: false,
        },
      ],
    });
  });

  test.each([
    ['no cluster id', '[{"id":1,"peerURLs":["http://127.0.0.1:1"]}]', undefined, 200],
    ['cluster id 0', '[{"id":1,"peerURLs":["http://127.0.0.1:1"]}]', '0', 200],
    ['a cluster id that is no number', '[{"id":1,"peerURLs":["http://127.0.0.1:1"]}]', 'zz', 200],
    ['R15 an empty list', '[]', 'abc', 200],
    ['no JSON', '404 page not found', 'abc', 200],
    ['another shape', '{"members":[]}', 'abc', 200],
    ['an id of more than 64 bits', '[{"id":18446744073709551616,"peerURLs":["http://127.0.0.1:1"]}]', 'abc', 200],
    ['a broken id', '[{"id":1.5,"peerURLs":["http://127.0.0.1:1"]}]', 'abc', 200],
    ['X08 a depth that no list has', '['.repeat(100_000), 'abc', 200],
    ['status 404', '[{"id":1,"peerURLs":["http://127.0.0.1:1"]}]', 'abc', 404],
  ])('%s is no answer of etcd', async (_what, body, clusterId, status) => {
    await using server = await answering(body, clusterId, status);
    // An undefined cluster id means no header here; the default of `answering` must not step in.
    await using bare = await tinyHttp((_request, response) => response.writeHead(status).end(body));
    const peerUrl = clusterId === undefined ? bare.url : server.url;
    await expect(askPeerMembers({ peerUrl, clock: systemClock })).rejects.toThrow(EtcdHttpError);
  });

  test('versions are told, and an undecided cluster version is unknown', async () => {
    await using server = await answering('{"etcdserver":"3.5.30","etcdcluster":"3.5.0","storage":"3.6.0"}');
    expect(await askPeerVersion({ peerUrl: server.url, clock: systemClock })).toEqual({
      server: '3.5.30',
      cluster: '3.5.0',
    });
    await using starting = await answering('{"etcdserver":"3.5.30","etcdcluster":"not_decided"}');
    expect(await askPeerVersion({ peerUrl: starting.url, clock: systemClock })).toEqual({
      server: '3.5.30',
      cluster: undefined,
    });
    await using other = await answering('{"etcdserver":3}');
    await expect(askPeerVersion({ peerUrl: other.url, clock: systemClock })).rejects.toThrow(
      'not that of an etcd member',
    );
  });
});
