import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.stream.Collectors;

/** Looks up the name in each line of its input with the resolver of Java, and prints the addresses, or the error. */
public class Resolve {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String name = in.readLine(); name != null; name = in.readLine()) {
            try {
                InetAddress[] found = InetAddress.getAllByName(name);
                System.out.println(Arrays.stream(found).map(InetAddress::getHostAddress).collect(Collectors.joining(" ")));
            } catch (UnknownHostException error) {
                System.out.println("error: " + error.getMessage());
            }
        }
    }
}
