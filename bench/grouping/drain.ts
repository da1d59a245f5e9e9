/**
 * Drain, the standard online template miner (He, Zhu, Zheng and Lyu, ICWS 2017), with its default settings: a
 * tree of depth 4 and a similarity of at least 0.4. A message is split at spaces; words with digits are
 * variable in the tree.
 */
const depth = 4
const similarityMin = 0.4
const childrenMax = 100
const wildcard = '<*>'

type Cluster = { id: number; template: string[] }
type Node = { children: Map<string, Node>; clusters: Cluster[] }

export class Drain {
  readonly #root: Node = newNode()
  #count = 0

  /** The id of the cluster of the message. */
  add(message: string): number {
    const words = message.trim().split(/\s+/)
    const { clusters } = this.#findLeaf(words)
    const best = findBest(clusters, words)
    if (best !== undefined) {
      best.template = best.template.map((word, index) => (word === words[index] ? word : wildcard))
      return best.id
    }
    const cluster = { id: ++this.#count, template: words }
    clusters.push(cluster)
    return cluster.id
  }

  /** By the number of words, and then by the first words. */
  #findLeaf(words: readonly string[]): Node {
    let node = getChild(this.#root, String(words.length))
    for (const word of words.slice(0, depth - 2)) node = getChild(node, /[0-9]/.test(word) ? wildcard : word)
    return node
  }
}

function newNode(): Node {
  return { children: new Map(), clusters: [] }
}

function getChild(node: Node, word: string): Node {
  const isFull = node.children.size >= childrenMax - 1 && !node.children.has(word)
  const key = isFull ? wildcard : word
  let child = node.children.get(key)
  if (child === undefined) {
    child = newNode()
    node.children.set(key, child)
  }
  return child
}

function findBest(clusters: readonly Cluster[], words: readonly string[]): Cluster | undefined {
  let best: Cluster | undefined
  let highest = -1
  let wildcards = -1
  for (const cluster of clusters) {
    const equal = cluster.template.filter((word, index) => word === words[index]).length / words.length
    const variable = cluster.template.filter((word) => word === wildcard).length
    if (equal < highest || (equal === highest && variable <= wildcards)) continue
    best = cluster
    highest = equal
    wildcards = variable
  }
  return highest >= similarityMin ? best : undefined
}
